-- Sliding log, compact: what few decisions need. The layout is told in slidingLog.lua.
local function slidingLogRare(open, advance)
  local call, pack, unpack, spread = redis.call, struct.pack, struct.unpack, unpack
  local sub, floor, max, min = string.sub, math.floor, math.max, math.min
  local DROPPED_AT_ONCE, LONGEST_CHUNK = 100, CHUNK_BYTES * 4
  local rare = {}

  -- The last chunk from `low` on whose base (or, by cost, the cost before it) is at most x
  function rare.seek(state, low, x, by_cost)
    local high = state.tail
    while low < high do
      local middle = floor((low + high + 1) / 2)
      local _, _, _, _, _, base, before = open(state, middle)
      if (by_cost and before or base) <= x then low = middle else high = middle - 1 end
    end
    return low
  end

  -- The time of the entry with which the log's whole cost reaches `target`, from window w's cursor on
  function rare.time_of_cost(state, w, target)
    local cost_before, number, entry = state[w * 4 - 3], state[w * 4 - 1], state[w * 4]
    while true do
      local text, from, count, format, width, base, before = open(state, number)
      if entry == 0 then cost_before = before end
      while entry < count do
        local offset, cost = unpack(format, text, from + entry * width)
        cost_before = cost_before + cost
        if cost_before >= target then return base + offset end
        entry = entry + 1
      end
      number, entry = rare.seek(state, number + 1, target - 1, true), 0
    end
  end

  -- Forgets chunks that every window has left behind, a bounded number of them at once
  function rare.drop_left(state, rule)
    local keep = state.first + DROPPED_AT_ONCE
    for w = 1, rule.windows do keep = min(keep, state[w * 4 - 1]) end
    if keep == state.first then return end
    local fields = {}
    for number = state.first, keep - 1 do fields[#fields + 1] = pack('<I4', number) end
    call('HDEL', state.key, spread(fields))
    state.first = keep
  end

  -- Counts the running cost from zero again where it would pass what a double tells to the unit. Entries that
  -- have left every window are cut off the chunk they share with others; none of this happens often.
  function rare.rebase(state, rule)
    local slowest = rule.slowest * 4
    local zero, number, cut = state[slowest - 3], state[slowest - 1], state[slowest]
    for chunk_number = state.first, state.tail - 1 do
      local field = pack('<I4', chunk_number)
      local chunk = call('HGET', state.key, field)
      local wide, base, before = unpack('<BI6d', chunk)
      local from = 16
      if chunk_number == number then before, from = zero, 16 + cut * (wide == 1 and 13 or 5) end
      call('HSET', state.key, field, pack('<BI6d', wide, base, before - zero) .. sub(chunk, from))
    end
    if number == state.tail then
      state.before, state.from = zero, state.from + cut * (state.wide == 1 and 13 or 5)
    end
    state.before, state.sum, state.read = state.before - zero, state.sum - zero, 0
    for w = 1, rule.windows do
      local c = w * 4 - 3
      state[c] = state[c] - zero
      if state[c + 2] == number then state[c + 3] = state[c + 3] - cut end
    end
  end

  -- The entries of a chunk with the cost of one changed, or with one put in before it; and the chunk's
  -- base and width, which may have to change for it
  local function changed(text, from, count, format, width, base, entry, found, at, cost)
    local rest = entry + (found and 1 or 0)
    if at >= base and (width == 13 or (cost < 65536 and at - base < 16777216)) then
      local entries = sub(text, from, from + entry * width - 1) .. pack(format, at - base, cost)
      return entries .. sub(text, from + rest * width, from + count * width - 1), base, width == 13 and 1 or 0
    end
    local new_base = min(base, at)
    local parts = {}
    for n = 0, count - 1 do
      local offset, old = unpack(format, text, from + n * width)
      if n == entry then parts[#parts + 1] = pack('<I6I7', at - new_base, cost) end
      if n < entry or n >= rest then parts[#parts + 1] = pack('<I6I7', base + offset - new_base, old) end
    end
    if entry == count then parts[#parts + 1] = pack('<I6I7', at - new_base, cost) end
    return table.concat(parts), new_base, 1
  end

  -- A chunk's entries as those of two: the first half and how many these are; the rest, its base and the cost before it
  local function halved(entries, wide, base, before)
    local format, width = '<I3I2', 5
    if wide == 1 then format, width = '<I6I7', 13 end
    local half, rest = floor(#entries / width / 2), {}
    local start = unpack(format, entries, half * width + 1)
    for n = 0, #entries / width - 1 do
      local offset, cost = unpack(format, entries, n * width + 1)
      if n < half then before = before + cost else rest[#rest + 1] = pack(format, offset - start, cost) end
    end
    return sub(entries, 1, half * width), half, table.concat(rest), base + start, before
  end

  -- Takes entries without a cost off the end, so that the newest time is that of something counted.
  -- Leaves the tail's entries in state.text, or nothing there when none are left.
  local function trim_tail(state, rule)
    local count
    while true do
      local text, from, entries, format, width, base = open(state, state.tail)
      count = entries
      local offset, cost
      if count > 0 then offset, cost = unpack(format, text, from + (count - 1) * width) end
      if count > 0 and cost > 0 then
        state.latest = base + offset
        break
      elseif count > 0 then
        state.text = sub(text, from, from + (count - 1) * width - 1)
        state.from = 1
      elseif state.tail == state.first then
        state.text = nil
        return
      else
        state.tail = state.tail - 1
        local field = pack('<I4', state.tail)
        local chunk = call('HGET', state.key, field)
        call('HDEL', state.key, field)
        state.wide, state.base, state.before = unpack('<BI6d', chunk)
        state.text, state.from = sub(chunk, 16), 1
      end
    end
    for w = 1, rule.windows do
      local number = state[w * 4 - 1]
      if number > state.tail or (number == state.tail and state[w * 4] > count) then
        state[w * 4 - 1], state[w * 4] = state.tail, count
      end
    end
  end

  -- Changes the cost recorded at a past time: an entry's, down to zero, or a new one's
  function rare.adjust(state, rule, now, at, cost, save, write)
    for w = 1, rule.windows do advance(state, rule, w, now) end
    if state.sum + cost > 9007199254740991 then rare.rebase(state, rule) end
    local number = rare.seek(state, state.first, at)
    local text, from, count, format, width, base, before = open(state, number)
    local entry, found, old = 0, false, 0
    while entry < count do
      local offset, recorded = unpack(format, text, from + entry * width)
      if base + offset >= at then
        if base + offset == at then found, old = true, recorded end
        break
      end
      entry = entry + 1
    end
    local difference = max(cost, -old)
    if difference == 0 then return end
    local entries, new_base, wide = changed(text, from, count, format, width, base, entry, found, at, old + difference)
    state.sum = state.sum + difference
    for w = 1, rule.windows do
      local c = w * 4 - 3
      if now - at >= rule[w * 2] then
        state[c] = state[c] + difference
        if not found and state[c + 2] == number then state[c + 3] = state[c + 3] + 1 end
      elseif at < state[c + 1] then
        state[c + 2], state[c + 3] = number, entry
      end
      state[c + 1] = -math.huge
    end
    -- What many settlements have put entries into becomes two chunks, and those after it move up
    local added = #entries > LONGEST_CHUNK and 1 or 0
    for later = state.tail - 1, number + 1, -1 do
      local chunk = call('HGET', state.key, pack('<I4', later))
      local its_wide, its_base, its_before = unpack('<BI6d', chunk)
      call('HSET', state.key, pack('<I4', later + added),
        pack('<BI6d', its_wide, its_base, its_before + difference) .. sub(chunk, 16))
    end
    if number < state.tail then state.before = state.before + difference end
    if added == 1 then
      local first, half, rest, rest_base, rest_before = halved(entries, wide, new_base, before)
      call('HSET', state.key, pack('<I4', number), pack('<BI6d', wide, new_base, before) .. first)
      for c = 1, rule.windows * 4, 4 do
        if state[c + 2] == number and state[c + 3] >= half then
          state[c + 2], state[c + 3] = number + 1, state[c + 3] - half
        elseif state[c + 2] > number then
          state[c + 2] = state[c + 2] + 1
        end
      end
      number, state.tail, entries, new_base, before = number + 1, state.tail + 1, rest, rest_base, rest_before
    end
    state.read = 0
    if number < state.tail then
      call('HSET', state.key, pack('<I4', number), pack('<BI6d', wide, new_base, before) .. entries)
    else
      state.text, state.from, state.base, state.before, state.wide = entries, 1, new_base, before, wide
      trim_tail(state, rule)
      if not state.text then
        state.latest = 0
        return write(state, '')
      end
    end
    for w = 1, rule.windows do advance(state, rule, w, now) end
    rare.drop_left(state, rule)
    save(state, rule, sub(state.text, state.from), '')
  end

  function rare.held(state, rule, w, now)
    local limit, count, gone, oldest = rule[w * 2 - 1], 0, nil, nil
    if state.text then
      gone, oldest = advance(state, rule, w, now)
      count = state.sum - gone
    end
    if count == 0 then return 0, limit end
    return count, max(0, limit - count), oldest, state.latest
  end

  -- The cost of all entries before a time
  local function cost_before_time(state, time)
    local text, from, count, format, width, base, before = open(state, rare.seek(state, state.first, time - 1))
    for entry = 0, count - 1 do
      local offset, cost = unpack(format, text, from + entry * width)
      if base + offset >= time then break end
      before = before + cost
    end
    return before
  end

  function rare.count(state, rule, w, now, from, to)
    from, to = max(from, now - rule[w * 2] + 1, 0), min(to, now)
    if not state.text or to < from then return 0, from, to end
    return cost_before_time(state, to + 1) - cost_before_time(state, from), from, to
  end

  return rare
end
