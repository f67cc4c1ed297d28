-- Sliding log, compact: algorithms/slidingLog.ts on one hash, for several windows over one log.
--
-- The log is a row of numbered chunks. An entry is the cost of one millisecond. A chunk opens with its
-- base time, the cost of all entries before it, and whether it is wide; then come its entries: how long
-- after the base, and the cost, in 3 + 2 bytes, or 6 + 7 where wide. Field n holds chunk n, up to the
-- tail; the tail stands in the head.
-- Field "h", the head: the newest time, the cost of all entries ever, the numbers of the first chunk
-- and of the tail; per window a cursor: the window, the cost of what has left it, and the chunk and
-- entry where what is still in it begins; then the tail.
-- So what a window counts is the whole cost less what has left it, and only few entries are ever read.
--
-- Rule: per window of the limiter: limit, window.
local function slidingLog()
  local call, pack, unpack, spread = redis.call, struct.pack, struct.unpack, unpack
  local sub, floor = string.sub, math.floor
  local HEAD, CURSOR, CHUNK = 25, 22, 17  -- bytes
  local ENTRIES_PER_CHUNK, DROPPED_AT_ONCE = 40, 100
  local NARROW, WIDE = '<I3I2', '<I6I7'
  local algorithm = {}

  local function longest(rule)
    local window = 0
    for i = 2, #rule, 2 do
      if rule[i] > window then window = rule[i] end
    end
    return window
  end

  function algorithm.load(key, rule)
    local windows = #rule / 2
    local state = { key = key, windows = windows, latest = 0 }
    local text = call('HGET', key, 'h')
    if not text then return state end
    local cursors
    state.latest, state.sum, state.first, state.tail, cursors = unpack('<ddI4I4B', text)
    state.text, state.from = text, HEAD + cursors * CURSOR + 1
    for w = 1, windows do
      local window, gone, chunk, entry
      if w <= cursors then
        window, gone, chunk, entry = unpack('<ddI4I2', text, HEAD + (w - 1) * CURSOR + 1)
      end
      if window ~= rule[w * 2] then  -- the rules have changed: begin with the oldest entry there is
        chunk, entry = state.first, 0
      end
      state[w] = { gone = gone, chunk = chunk, entry = entry }
    end
    return state
  end

  -- A chunk's text, where its entries begin, how many there are and how wide, its base and the cost before it
  local function open(state, number)
    local text, from = state.text, state.from
    if number ~= state.tail then
      if state.read ~= number then
        state.read, state.read_text = number, call('HGET', state.key, number)
      end
      text, from = state.read_text, 1
    end
    local base, before, wide = unpack('<ddB', text, from)
    local format, width = NARROW, 5
    if wide == 1 then format, width = WIDE, 13 end
    from = from + CHUNK
    return text, from, (#text - from + 1) / width, format, width, base, before
  end

  -- The last chunk from `low` on whose base (or, by cost, the cost before it) is at most x
  local function seek(state, low, x, by_cost)
    local high = state.tail
    while low < high do
      local middle = floor((low + high + 1) / 2)
      local _, _, _, _, _, base, before = open(state, middle)
      if (by_cost and before or base) <= x then low = middle else high = middle - 1 end
    end
    return low
  end

  -- Moves a window's cursor past what has left it by `now`; in memory only, until `save`
  local function advance(state, rule, w, now)
    local cursor, left = state[w], now - rule[w * 2]
    local number, entry, gone = cursor.chunk, cursor.entry, cursor.gone
    if state.latest <= left then
      local _, _, count = open(state, state.tail)
      cursor.chunk, cursor.entry, cursor.gone = state.tail, count, state.sum
      return cursor
    end
    local hops = 0
    while true do
      local text, from, count, format, width, base, before = open(state, number)
      if entry == 0 then gone = before end
      local last = left - base
      while entry < count do
        local offset, cost = unpack(format, text, from + entry * width)
        if offset > last then
          cursor.chunk, cursor.entry, cursor.gone = number, entry, gone
          return cursor
        end
        gone, entry = gone + cost, entry + 1
      end
      hops = hops + 1
      number, entry = number + 1, 0
      if hops > 1 then number = seek(state, number, left) end
    end
  end

  -- The time of the entry with which the log's whole cost reaches `target`, from the cursor on
  local function time_of_cost(state, cursor, target)
    local number, entry, cost_before = cursor.chunk, cursor.entry, cursor.gone
    while true do
      local text, from, count, format, width, base, before = open(state, number)
      if entry == 0 then cost_before = before end
      while entry < count do
        local offset, cost = unpack(format, text, from + entry * width)
        cost_before = cost_before + cost
        if cost_before >= target then return base + offset end
        entry = entry + 1
      end
      number, entry = seek(state, number + 1, target - 1, true), 0
    end
  end

  function algorithm.check(state, rule, now, cost, reply, r)
    local fits = true
    for w = 1, state.windows do
      local limit, count, cursor = rule[w * 2 - 1], 0, nil
      if state.text then
        cursor = advance(state, rule, w, now)
        count = state.sum - cursor.gone
      end
      local remaining = limit > count and limit - count or 0
      reply[r + 1], reply[r + 2] = remaining, 0
      if cost > remaining then
        fits = false
        if cost > limit then
          reply[r + 2] = -1
        else
          reply[r + 2] = time_of_cost(state, cursor, cursor.gone + count + cost - limit) + rule[w * 2] - now
        end
      end
      r = r + 4
    end
    return fits
  end

  -- Long enough that it must be done only once in a quarter of the window
  local function renew(state, rule)
    call('PEXPIRE', state.key, longest(rule) * 2 + TTL_SLACK)
  end

  -- Writes the head, and with it the tail as given; `number` and `chunk`: a chunk to write as well
  local function save(state, rule, tail, number, chunk)
    local head = { pack('<ddI4I4B', state.latest, state.sum, state.first, state.tail, state.windows) }
    for w = 1, state.windows do
      head[w + 1] = pack('<ddI4I2', rule[w * 2], state[w].gone, state[w].chunk, state[w].entry)
    end
    head[#head + 1] = tail
    state.text, state.from = table.concat(head), HEAD + state.windows * CURSOR + 1
    if chunk then
      call('HSET', state.key, 'h', state.text, number, chunk)
    else
      call('HSET', state.key, 'h', state.text)
    end
  end

  local function entry_of(base, at, cost)
    local offset = at - base
    if offset < 16777216 and cost < 65536 then return pack(NARROW, offset, cost), 0 end
    return pack(WIDE, offset, cost), 1
  end

  local function new_chunk(at, before, cost)
    local entry, wide = entry_of(at, at, cost)
    return pack('<ddB', at, before, wide) .. entry
  end

  local function start(state, rule, at, cost)
    state.latest, state.sum, state.first, state.tail = at, cost, 1, 1
    for w = 1, state.windows do state[w] = { gone = 0, chunk = 1, entry = 0 } end
    save(state, rule, new_chunk(at, 0, cost))
    renew(state, rule)
  end

  -- Forgets chunks that every window has left behind, a bounded number of them at once
  local function drop_left(state)
    local keep = state.tail
    for w = 1, state.windows do keep = math.min(keep, state[w].chunk) end
    keep = math.min(keep, state.first + DROPPED_AT_ONCE)
    if keep == state.first then return end
    local fields = {}
    for number = state.first, keep - 1 do fields[#fields + 1] = number end
    call('HDEL', state.key, spread(fields))
    state.first = keep
  end

  local function append(state, rule, at, cost)
    local before = state.latest
    drop_left(state)
    local text, from, count, format, width, base, cost_before = open(state, state.tail)
    local kept = count
    local total = cost
    if at == before then  -- one entry per millisecond: the last one grows
      local _, last = unpack(format, text, from + (count - 1) * width)
      kept, total = count - 1, cost + last
    end
    state.latest, state.sum = at, state.sum + cost
    local entry, wide = entry_of(base, at, total)
    local chunk = sub(text, from - CHUNK, from + kept * width - 1)
    if kept == 0 then
      save(state, rule, new_chunk(at, cost_before, total))
    elseif kept < ENTRIES_PER_CHUNK and (width == 13 or wide == 0) then
      save(state, rule, chunk .. (width == 13 and pack(WIDE, at - base, total) or entry))
    else
      state.tail = state.tail + 1
      save(state, rule, new_chunk(at, state.sum - total, total), state.tail - 1, chunk)
    end
    local quarter = floor(longest(rule) / 4) + 1
    if floor(before / quarter) ~= floor(at / quarter) then renew(state, rule) end
  end

  -- A chunk's text with the cost of entry number `entry` changed, or with one put in before it
  local function changed(text, from, count, format, width, base, before, entry, found, at, cost)
    local fits = at >= base and (width == 13 or (cost < 65536 and at - base < 16777216))
    if fits then
      return sub(text, from - CHUNK, from + entry * width - 1) .. pack(format, at - base, cost)
        .. sub(text, from + (entry + (found and 1 or 0)) * width, from + count * width - 1)
    end
    local new_base = math.min(base, at)
    local parts = { pack('<ddB', new_base, before, 1) }
    for n = 0, count - 1 do
      local offset, old = unpack(format, text, from + n * width)
      if n == entry then parts[#parts + 1] = pack(WIDE, at - new_base, cost) end
      if n ~= entry or not found then parts[#parts + 1] = pack(WIDE, base + offset - new_base, old) end
    end
    if entry == count then parts[#parts + 1] = pack(WIDE, at - new_base, cost) end
    return table.concat(parts)
  end

  -- Takes entries without a cost off the end, so that the newest time is that of something counted
  local function trim_tail(state)
    while true do
      local text, from, count, format, width, base = open(state, state.tail)
      local offset, cost
      if count > 0 then offset, cost = unpack(format, text, from + (count - 1) * width) end
      if count > 0 and cost > 0 then
        state.latest = base + offset
        break
      elseif count > 0 then
        state.text = sub(text, 1, from + (count - 1) * width - 1)
      elseif state.tail == state.first then
        state.text = nil
        return
      else
        state.tail = state.tail - 1
        state.text, state.from = call('HGET', state.key, state.tail), 1
        call('HDEL', state.key, state.tail)
      end
    end
    local _, _, count = open(state, state.tail)
    for w = 1, state.windows do
      local cursor = state[w]
      if cursor.chunk > state.tail or (cursor.chunk == state.tail and cursor.entry > count) then
        cursor.chunk, cursor.entry = state.tail, count
      end
    end
  end

  -- Changes the cost recorded at a past time: an entry's, down to zero, or a new one's
  local function adjust(state, rule, now, at, cost)
    local number = seek(state, state.first, at)
    local text, from, count, format, width, base, before = open(state, number)
    local entry, found, old = 0, false, 0
    while entry < count do
      local offset, recorded = unpack(format, text, from + entry * width)
      if base + offset >= at then
        found, old = base + offset == at, recorded
        break
      end
      entry = entry + 1
    end
    if not found then old = 0 end
    local difference = math.max(cost, -old)
    if difference == 0 then return end
    local chunk = changed(text, from, count, format, width, base, before, entry, found, at, old + difference)
    state.sum = state.sum + difference
    for w = 1, state.windows do
      local cursor = state[w]
      if now - at >= rule[w * 2] then
        cursor.gone = cursor.gone + difference
        if not found and cursor.chunk == number then cursor.entry = cursor.entry + 1 end
      end
    end
    for later = number + 1, state.tail - 1 do
      local stored = call('HGET', state.key, later)
      local its_base, its_before, wide = unpack('<ddB', stored)
      call('HSET', state.key, later, pack('<ddB', its_base, its_before + difference, wide) .. sub(stored, CHUNK + 1))
    end
    state.read = nil
    if number < state.tail then
      local tail_base, tail_before, wide = unpack('<ddB', state.text, state.from)
      local tail = pack('<ddB', tail_base, tail_before + difference, wide) .. sub(state.text, state.from + CHUNK)
      save(state, rule, tail, number, chunk)
      return
    end
    state.text, state.from = chunk, 1
    trim_tail(state)
    if state.text then
      save(state, rule, sub(state.text, state.from))
    else
      state.latest = 0
      call('UNLINK', state.key)
    end
  end

  function algorithm.charge(state, rule, now, at, cost)
    if now - at >= longest(rule) then return end
    if state.text and state.latest <= now - longest(rule) then
      call('UNLINK', state.key)
      state.text = nil
    end
    if not state.text then
      if cost > 0 then start(state, rule, at, cost) end
      return
    end
    for w = 1, state.windows do advance(state, rule, w, now) end
    if cost > 0 and at >= state.latest then
      append(state, rule, at, cost)
    else
      adjust(state, rule, now, at, cost)
    end
  end

  function algorithm.expires(state, rule, w) return state.text and state.latest + rule[w * 2] or 0 end

  function algorithm.held(state, rule, w, now)
    local limit, count, cursor = rule[w * 2 - 1], 0, nil
    if state.text then
      cursor = advance(state, rule, w, now)
      count = state.sum - cursor.gone
    end
    if count == 0 then return 0, limit end
    return count, math.max(0, limit - count), time_of_cost(state, cursor, cursor.gone + 1), state.latest
  end

  -- The cost of all entries before a time
  local function cost_before_time(state, time)
    local text, from, count, format, width, base, before = open(state, seek(state, state.first, time - 1))
    for entry = 0, count - 1 do
      local offset, cost = unpack(format, text, from + entry * width)
      if base + offset >= time then break end
      before = before + cost
    end
    return before
  end

  function algorithm.count(state, rule, w, now, from, to)
    from, to = math.max(from, now - rule[w * 2] + 1, 0), math.min(to, now)
    if not state.text or to < from then return 0, from, to end
    return cost_before_time(state, to + 1) - cost_before_time(state, from), from, to
  end

  return algorithm
end
