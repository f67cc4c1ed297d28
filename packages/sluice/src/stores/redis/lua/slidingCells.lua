-- Sliding cells and the two-window counter: algorithms/slidingCells.ts on one hash. Field "m" holds
-- three doubles: the first cell that is counted, the one after the last, and the total. The other
-- fields, 0 to the ring's size less one, hold two doubles each: a cell's number and its count. A
-- field is overwritten when the ring comes round to it; one whose number is another's counts nothing.
-- Rule: limit, window, milliseconds per cell, size of the ring, 1 for strict.
local function slidingCells()
  local call, pack, unpack, ceil, floor, max, min =
    redis.call, struct.pack, struct.unpack, math.ceil, math.floor, math.max, math.min
  local algorithm = {}

  function algorithm.prepare(rule) rule.windows = 1 end

  function algorithm.load(state, key, rule)
    local text = call('HGET', key, 'm')
    state.key, state.first, state.ends, state.total, state.cells, state.all = key, 0, 0, 0, {}, false
    if text then state.first, state.ends, state.total = unpack('<ddd', text) end
    state.latest = max(0, state.ends - 1) * rule[3]
  end

  local function count_of(state, rule, k)
    local count = state.cells[k]
    if not count and state.all then return 0 end
    if not count then
      local text = call('HGET', state.key, k % rule[4])
      count = 0
      if text then
        local number, stored = unpack('<dd', text)
        if number == k then count = stored end
      end
      state.cells[k] = count
    end
    return count
  end

  -- Reads all cells in one step, where one after the other will be asked for
  local function read_all(state)
    local fields = call('HGETALL', state.key)
    for n = 1, #fields, 2 do
      if fields[n] ~= 'm' then
        local number, count = unpack('<dd', fields[n + 1])
        state.cells[number] = count
      end
    end
    state.all = true
  end

  local function leaves(rule, k) return (k + 1) * rule[3] - 1 + rule[2] end

  local function first_inside(rule, now) return max(0, floor((now - rule[2] + 1) / rule[3])) end

  local function load_now(state, rule, now)
    if state.total == 0 then return 0 end
    local inside = first_inside(rule, now)
    if inside >= state.ends then return 0 end
    local left = 0
    for k = state.first, inside - 1 do left = left + count_of(state, rule, k) end
    if rule[5] == 1 or inside < state.first then return state.total - left end
    local count = count_of(state, rule, inside)
    local share = min(rule[3], leaves(rule, inside) - now)
    return state.total - left - count + ceil(count * share / rule[3])
  end

  local function share_that_fits(rule, count, room)
    if room < 0 then return -1 end
    if count <= room then return rule[3] end
    if rule[5] == 1 then return 0 end
    local most = floor(room * rule[3] / count)
    while ceil(count * most / rule[3]) > room do most = most - 1 end
    while ceil(count * (most + 1) / rule[3]) <= room do most = most + 1 end
    return most
  end

  function algorithm.check(state, rule, now, cost, reply, r)
    local remaining = max(0, rule[1] - load_now(state, rule, now))
    reply[r + 1], reply[r + 2] = remaining, 0
    if cost <= remaining then return true end
    reply[r + 2] = -1
    if cost > rule[1] then return end
    read_all(state)
    local inside = state.total
    for k = state.first, state.ends - 1 do
      local count = count_of(state, rule, k)
      inside = inside - count
      local share = share_that_fits(rule, count, rule[1] - cost - inside)
      if share >= 0 then
        reply[r + 2] = leaves(rule, k) - share - now
        return
      end
    end
  end

  function algorithm.charge(state, rule, now, at, cost)
    local k, inside = floor(at / rule[3]), first_inside(rule, now)
    if inside >= state.ends then
      state.first, state.ends, state.total = 0, 0, 0
    else
      for left = state.first, inside - 1 do state.total = state.total - count_of(state, rule, left) end
      state.first = max(state.first, inside)
    end
    local before = state.total == 0 and 0 or count_of(state, rule, k)
    local after = max(0, before + cost)
    if k < inside or after == before then return end
    state.first = state.total == 0 and k or min(state.first, k)
    state.ends = max(state.ends, k + 1)
    state.total = state.total + after - before
    if state.total == 0 then
      call('DEL', state.key)
      state.first, state.ends = 0, 0
      return
    end
    state.cells[k] = after
    while count_of(state, rule, state.ends - 1) == 0 do state.ends = state.ends - 1 end
    call('HSET', state.key, 'm', pack('<ddd', state.first, state.ends, state.total), k % rule[4], pack('<dd', k, after))
    call('PEXPIRE', state.key, leaves(rule, state.ends - 1) - now + state.ahead + TTL_SLACK)
  end

  function algorithm.expires(state, rule)
    for k = state.ends - 1, state.first, -1 do
      if count_of(state, rule, k) > 0 then return leaves(rule, k) end
    end
    return 0
  end

  function algorithm.held(state, rule, _, now)
    local oldest, newest
    read_all(state)
    for k = max(state.first, first_inside(rule, now)), state.ends - 1 do
      if count_of(state, rule, k) > 0 then
        newest = k * rule[3]
        oldest = oldest or newest
      end
    end
    local count = load_now(state, rule, now)
    return count, max(0, rule[1] - count), oldest, newest
  end

  function algorithm.count(state, rule, _, now, from, to)
    local first, last = max(first_inside(rule, now), floor(from / rule[3])), floor(to / rule[3])
    local count = 0
    for k = max(first, state.first), min(last, state.ends - 1) do count = count + count_of(state, rule, k) end
    return count, first * rule[3], min(now, (last + 1) * rule[3] - 1)
  end

  return algorithm
end
