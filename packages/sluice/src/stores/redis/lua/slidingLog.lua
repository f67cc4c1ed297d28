-- Sliding log, compact: algorithms/slidingLog.ts on one hash, for several windows over one log.
--
-- The log is a row of numbered chunks of entries; an entry is the cost of one millisecond: how long
-- after its chunk's base time, and the cost, in 3 + 2 bytes, or in 6 + 7 where the chunk is wide.
-- The field named by the four bytes of n holds chunk n: whether it is wide, its base, the cost of all entries
-- before it, its entries. Field "h", the head: the cost of all entries ever, and how many of the tail's it tells of;
-- the number of windows; then, as the tail is not a field of its own, whether it is wide, its base, its number and the
-- cost before it; the number of the first chunk; per window a cursor: the window, the cost of what has left it, the
-- time of the oldest entry still in it that has a cost (0: none), and that entry's chunk and place in it; at last the
-- tail's entries. So what a window counts is the whole cost less what has left it, and few
-- entries are ever read: while the oldest is still in its window, none but the last. And an entry of the same cost
-- as the last one is only put behind it: each that the cost of all does not tell of is of that same cost.
--
-- Rule: per window of the limiter: limit, window.
--
-- What most decisions need is here; slidingLogRare.lua has the rest, made only when it is called for,
-- since making a function costs a call more than running one.
local function slidingLog()
  local call, pack, unpack, sub = redis.call, struct.pack, struct.unpack, string.sub
  local rare

  -- In the state, window w's cursor is at w * 4 - 3: what has left, oldest time, chunk, entry
  local function load(state, key, rule, _, text)
    if text == nil then text = call('HGET', key, 'h') end
    state.key, state.text, state.read, state.changed = key, text, 0, false
    if not text then
      state.latest = 0
      return
    end
    local written, cursors
    state.sum, written, cursors, state.wide, state.base, state.tail, state.before, state.first
      = unpack('<dI2BBI6I4dI4', text)
    state.from = 35 + cursors * 28
    local format, width = '<I3I2', 5
    if state.wide == 1 then format, width = '<I6I7', 13 end
    local offset, cost = unpack(format, text, #text - width + 1)
    state.latest = state.base + offset
    state.sum = state.sum + ((#text - state.from + 1) / width - written) * cost
    for w = 1, rule.windows do
      local window, c = nil, w * 4 - 3
      if w <= cursors then
        window, state[c], state[c + 1], state[c + 2], state[c + 3] = unpack('<ddI6I4I2', text, 7 + w * 28)
      end
      if window ~= rule[w * 2] then  -- the rules have changed: begin with the oldest entry there is
        state[c], state[c + 1], state[c + 2], state[c + 3], state.changed = 0, -math.huge, state.first, 0, true
      end
    end
  end

  -- A chunk's text, where its entries begin, how many there are and how wide, its base and the cost before it
  local function open(state, number)
    local text, from, base, before, wide
    if number == state.tail then
      text, from, base, before, wide = state.text, state.from, state.base, state.before, state.wide
    else
      if state.read ~= number then
        state.read, state.read_text = number, call('HGET', state.key, pack('<I4', number))
      end
      text, from = state.read_text, 16
      wide, base, before = unpack('<BI6d', text)
    end
    if wide == 1 then return text, from, (#text - from + 1) / 13, '<I6I7', 13, base, before end
    return text, from, (#text - from + 1) / 5, '<I3I2', 5, base, before
  end

  -- Moves a window's cursor past what has left it by `now`, in memory only, until `save`.
  -- Tells the cost of what has left, and the time of the oldest entry that has a cost and has not.
  local function advance(state, rule, w, now)
    local c, left = w * 4 - 3, now - rule[w * 2]
    if state.latest <= left then
      local count = (#state.text - state.from + 1) / (state.wide == 1 and 13 or 5)
      state[c], state[c + 1], state[c + 2], state[c + 3] = state.sum, 0, state.tail, count
      return state.sum
    end
    local gone, oldest, number, entry = state[c], state[c + 1], state[c + 2], state[c + 3]
    if oldest > left then return gone, oldest end
    if oldest == 0 then number, entry = state.first, 0 end  -- nothing was left in it, and then the clock stepped back
    local hops = 0
    while true do
      local text, from, count, format, width, base, before = open(state, number)
      if entry == 0 then gone = before end
      while entry < count do
        local offset, cost = unpack(format, text, from + entry * width)
        if base + offset > left and cost > 0 then
          oldest = base + offset
          state[c], state[c + 1], state[c + 2], state[c + 3] = gone, oldest, number, entry
          return gone, oldest
        end
        gone, entry = gone + cost, entry + 1
      end
      number, entry, hops = number + 1, 0, hops + 1
      if hops > 1 then
        rare = rare or slidingLogRare(open, advance)
        number = rare.seek(state, number, left)
      end
    end
  end

  local function check(state, rule, now, cost, reply, r)
    local fits = true
    for w = 1, rule.windows do
      local limit, count, gone, oldest = rule[w * 2 - 1], 0, nil, nil
      if state.text then
        gone, oldest = advance(state, rule, w, now)
        count = state.sum - gone
      end
      local remaining = limit > count and limit - count or 0
      reply[r + 1], reply[r + 2] = remaining, 0
      if cost > remaining then
        fits = false
        local over = cost - (limit - count)  -- in this order no sum is past what a double tells
        if cost > limit then
          reply[r + 2] = -1
        else
          if over > 1 then
            rare = rare or slidingLogRare(open, advance)
            oldest = rare.time_of_cost(state, w, gone + over)
          end
          reply[r + 2] = oldest + rule[w * 2] - now
        end
      end
      r = r + 3
    end
    return fits
  end

  -- Writes the head, and a chunk where there is one. What is held under a lease stands behind it: leased.lua
  local function write(state, head, number, chunk)
    local beside = state.beside or ''
    state.unsaved = false
    if head == '' and beside ~= '' then head = NO_LOG end
    if head == '' then
      call('HDEL', state.key, 'h')
    elseif chunk then
      call('HSET', state.key, 'h', head .. beside, pack('<I4', number), chunk)
    else
      call('HSET', state.key, 'h', head .. beside)
    end
  end

  -- Writes the head with these entries as the tail's, the last apart; `number` and `chunk`: a chunk as well
  local function save(state, rule, entries, last, number, chunk)
    local head = pack('<dI2BBI6I4dI4', state.sum, (#entries + #last) / (state.wide == 1 and 13 or 5), rule.windows,
      state.wide, state.base, state.tail, state.before, state.first)
    for w = 1, rule.windows do
      local c = w * 4 - 3
      head = head .. pack('<ddI6I4I2', rule[w * 2], state[c], state[c + 1], state[c + 2], state[c + 3])
    end
    write(state, head .. entries .. last, number, chunk)
    -- Times to live are renewed once per window, so what a shorter one was given may not last for a longer one
    if state.changed then call('PEXPIRE', state.key, rule.longest * 2 + TTL_SLACK) end
  end

  local function charge(state, rule, now, at, cost)
    if now - at >= rule.longest then return end
    local before, text = state.latest, state.text
    -- A long log of which nothing counts any more goes at once; a short one as the next entry is written, since
    -- a key that goes and comes back within one script is an error while its slot moves to another node.
    if text and cost > 0 and before <= now - rule.longest and state.tail - state.first > 100 then
      call('UNLINK', state.key)
      text = false
    end
    if not text then
      if cost <= 0 then return end
      state.first, state.tail, state.sum = 1, 0, 0
      for w = 1, rule.windows do
        local c = w * 4 - 3
        state[c], state[c + 1], state[c + 2], state[c + 3] = 0, at, 1, 0
      end
    elseif cost <= 0 or at < before then
      local amended = amend(text, at, cost)
      if amended then return write(state, amended) end
      rare = rare or slidingLogRare(open, advance)
      return rare.adjust(state, rule, now, at, cost, save, write)
    end

    local kept, chunk, count, format, width, base = '', nil, 0, nil, nil, nil
    if text then
      for w = 1, rule.windows do advance(state, rule, w, now) end
      if state.sum + cost > 9007199254740991 then
        rare = rare or slidingLogRare(open, advance)
        rare.rebase(state, rule)
      end
      if state[rule.slowest * 4 - 1] > state.first then
        rare = rare or slidingLogRare(open, advance)
        rare.drop_left(state, rule)
      end
      local from
      text, from, count, format, width, base = open(state, state.tail)
      if at == before then  -- one entry per millisecond: the last one grows
        local _, last = unpack(format, text, from + (count - 1) * width)
        count, cost, state.sum = count - 1, cost + last, state.sum - last
      end
      kept = sub(text, from, from + count * width - 1)
      for w = 1, rule.windows do
        if before <= now - rule[w * 2] and at > now - rule[w * 2] then state[w * 4 - 2] = at end
      end
    end
    state.latest, state.sum = at, state.sum + cost
    if count > 0 and #kept < CHUNK_BYTES and (width == 13 or (cost < 65536 and at - base < 16777216)) then
      save(state, rule, kept, pack(format, at - base, cost))
    else
      if count > 0 then chunk = pack('<BI6d', state.wide, base, state.before) .. kept end
      if count > 0 or not text then state.tail = state.tail + 1 end
      state.base, state.before, state.wide = at, state.sum - cost, cost < 65536 and 0 or 1
      save(state, rule, '', pack(cost < 65536 and '<I3I2' or '<I6I7', 0, cost), state.tail - 1, chunk)
    end
    state.text = true
    -- Two windows, so that it must be renewed only when time has come to another multiple of the window
    local longest = rule.longest
    if not text or before - before % longest ~= at - at % longest then
      call('PEXPIRE', state.key, longest * 2 + TTL_SLACK)
    end
  end

  return {
    load = load, check = check, charge = charge, write = write,
    prepare = function(rule)
      rule.windows, rule.longest = #rule / 2, 0
      for w = 1, rule.windows do
        if rule[w * 2] > rule.longest then rule.longest, rule.slowest = rule[w * 2], w end
      end
    end,
    expires = function(state, rule, w) return state.text and state.latest + rule[w * 2] or 0 end,
    held = function(state, rule, w, now) return slidingLogRare(open, advance).held(state, rule, w, now) end,
    count = function(state, rule, w, now, from, to)
      return slidingLogRare(open, advance).count(state, rule, w, now, from, to)
    end,
  }
end
