-- A window with a lease: algorithms/leased.ts. What the window counts for good is kept by its own algorithm, under the
-- first key. What is held is a text of holders in the order in which they end: the id with its length before it, when
-- the lease ends, since when it holds, the cost; and the cost of all that is held, which only the last one tells right.
-- So a decision reads and writes at the end. In a log it stands behind the tail's entries, which its head counts all, so
-- that one command reads both and one writes both, and a head of zeros before it when there is none; beside any other
-- algorithm it is a string under the second key, which is in the same slot.
-- Rule: the algorithm's own numbers, window, lease.
local function leased(letter, makers)
  local call, pack, unpack, sub, max, min = redis.call, struct.pack, struct.unpack, string.sub, math.max, math.min
  local in_log = letter == 'R'
  local inner = makers[in_log and 'L' or sub(letter, 2)]()
  local algorithm = {}

  function algorithm.prepare(rule)
    rule.lease, rule.window = table.remove(rule), table.remove(rule)
    inner.prepare(rule)
  end

  function algorithm.load(state, key, rule, held_key)
    local text
    if in_log then
      local both, head = call('HGET', key, 'h'), false
      text = ''
      if both then
        local entries, _, wide = unpack('<I2BB', both, 9)
        local from = 63 + entries * (wide == 1 and 13 or 5)
        if entries > 0 then head = sub(both, 1, from - 1) end
        text = sub(both, from)
      end
      inner.load(state, key, rule, nil, head)
      state.beside, state.unsaved = text, false
    else
      inner.load(state, key, rule)
      state.held_key, text = held_key, call('GET', held_key) or ''
    end
    state.held_text, state.held, state.held_until = text, 0, 0
    if text ~= '' then
      local _
      state.held_until, _, _, state.held = unpack('<dddd', text, #text - 31)
    end
  end

  -- A holder: when its lease ends, since when it holds, what, and where the next one is
  local function read(text, place)
    place = place + 2 + unpack('<I2', text, place)
    local ends, at, cost = unpack('<ddd', text, place)
    return ends, at, cost, place + 32
  end

  -- What is held now, and where the first is whose lease has not ended
  local function live(state, now)
    local text, held, place = state.held_text, state.held, 1
    if state.held_until <= now then return 0, #text + 1 end
    while true do
      local ends, _, cost, following = read(text, place)
      if ends > now then return held, place end
      held, place = held - cost, following
    end
  end

  -- How long until a cost would fit, were nothing held
  local function wait_beside(state, rule, now, cost)
    local answer = {}
    inner.check(state, rule, now, cost, answer, 0)
    return answer[2] < 0 and math.huge or answer[2]
  end

  -- The leases end one after the other: see algorithms/leased.ts
  local function wait_for(state, rule, now, cost, place)
    local ends, costs = { [0] = now }, {}
    while place < #state.held_text do
      local its_end, _, its_cost, following = read(state.held_text, place)
      ends[#ends + 1], costs[#costs + 1], place = its_end, its_cost, following
    end
    local beside = { [#ends] = cost }  -- summed up, so that what could fit is never past what a double tells
    for n = #ends, 1, -1 do beside[n - 1] = beside[n] + costs[n] end
    local low, high = 0, #ends
    while low < high do
      local middle = math.floor((low + high) / 2)
      if now + wait_beside(state, rule, now, beside[middle]) < ends[middle + 1] then
        high = middle
      else
        low = middle + 1
      end
    end
    local wait = max(wait_beside(state, rule, now, beside[low]), ends[low] - now)
    return wait == math.huge and -1 or wait
  end

  function algorithm.check(state, rule, now, cost, reply, r)
    local held, place = live(state, now)
    local fits = inner.check(state, rule, now, cost + held, reply, r)
    reply[r + 1] = max(0, reply[r + 1] - held)
    if fits or cost == 0 then
      reply[r + 2] = 0
      return true
    end
    if held > 0 then reply[r + 2] = wait_for(state, rule, now, cost, place) end
  end

  -- The text with a holder put in its place, which is nearly always the end
  local function with_holder(text, ends, at, cost, id)
    local holder, place = pack('<I2c0dddd', #id, id, ends, at, cost, 0), #text + 1
    if text ~= '' and unpack('<d', text, #text - 31) > ends then
      place = 1
      while true do
        local other, _, _, following = read(text, place)
        if other > ends then break end
        place = following
      end
    end
    return sub(text, 1, place - 1) .. holder .. sub(text, place)
  end

  -- In a log, what is held is written with what is counted, or else by `flush`
  local function save(state, now, held, text)
    state.held_until = 0
    if text ~= '' then
      text = sub(text, 1, -9) .. pack('<d', held)
      state.held_until = unpack('<d', text, #text - 31)
    end
    if in_log then
      state.beside, state.unsaved = text, true
    elseif text == '' then
      call('DEL', state.held_key)
    else
      call('SET', state.held_key, text, 'PX', state.held_until - now + state.ahead + TTL_SLACK)
    end
  end

  local function flush(state)
    if state.unsaved then inner.write(state, state.text or '') end
  end

  -- Whether a log's key will live for a window from `at` on: what is of the same multiple of the window has seen to it
  local function is_kept(state, rule, at)
    local start = at - at % rule.window
    if state.text and state.latest >= start then return true end
    return state.held_text ~= '' and unpack('<d', state.held_text, #state.held_text - 23) >= start
  end

  function algorithm.charge(state, rule, now, at, cost, id)
    if id == '' then return inner.charge(state, rule, now, at, cost, id) end
    local held, place = live(state, now)
    save(state, now, held + cost, with_holder(sub(state.held_text, place), at + rule.lease, at, cost, id))
    flush(state)
    if in_log and not is_kept(state, rule, at) then call('PEXPIRE', state.key, rule.window * 2 + TTL_SLACK) end
  end

  -- Lets a holder go for what it really was; or, where that is -1, begins its lease anew and tells whether it could
  function algorithm.settle(state, rule, now, at, actual, id)
    local held, first = live(state, now)
    local text, time = state.held_text, now
    local found = string.find(text, pack('<I2c0', #id, id), 1, true)
    local is_held = found and found >= first
    if is_held then
      local _, began, cost, following = read(text, found)
      text = sub(text, first, found - 1) .. sub(text, following)
      held, time = held - cost, max(now, at)
      if actual < 0 then
        text = with_holder(text, min(now + rule.lease, at + rule.window), began, cost, id)
        held = held + cost
      end
      save(state, now, held, text)
    elseif found then
      save(state, now, held, sub(text, first))
    end
    if actual > 0 and at <= time then
      state.ahead = state.ahead + time - now
      inner.charge(state, rule, time, at, actual, '')
    end
    flush(state)
    return actual >= 0 or is_held or now >= at + rule.window
  end

  function algorithm.expires(state, rule, w) return max(inner.expires(state, rule, w), state.held_until) end

  function algorithm.held(state, rule, w, now)
    local count, remaining, oldest, newest = inner.held(state, rule, w, now)
    local held, place = live(state, now)
    while place <= #state.held_text do
      local _, at, _, following = read(state.held_text, place)
      oldest, newest, place = min(oldest or at, at), max(newest or at, at), following
    end
    return count + held, max(0, remaining - held), oldest, newest
  end

  function algorithm.count(state, rule, w, now, from, to)
    local count, first, last = inner.count(state, rule, w, now, from, to)
    local _, place = live(state, now)
    while place <= #state.held_text do
      local _, at, cost, following = read(state.held_text, place)
      if first <= at and at <= last then count = count + cost end
      place = following
    end
    return count, first, last
  end

  return algorithm
end
