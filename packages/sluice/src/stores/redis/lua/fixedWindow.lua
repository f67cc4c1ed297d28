-- Fixed window: algorithms/fixedWindow.ts on a string of two doubles, the window's end and its count.
-- Rule: limit, window.
local function fixedWindow()
  local call, pack, unpack, floor = redis.call, struct.pack, struct.unpack, math.floor
  local algorithm = {}

  function algorithm.prepare(rule) rule.windows = 1 end

  function algorithm.load(state, key, rule)
    local text = call('GET', key)
    state.key, state.ends, state.count, state.latest = key, 0, 0, 0
    if text then
      state.ends, state.count = unpack('<dd', text)
      state.latest = state.ends - rule[2]
    end
  end

  local function used(state, now) return now < state.ends and state.count or 0 end

  function algorithm.check(state, rule, now, cost, reply, r)
    local remaining = rule[1] - used(state, now)
    if remaining < 0 then remaining = 0 end
    reply[r + 1], reply[r + 2] = remaining, 0
    if cost <= remaining then return true end
    reply[r + 2] = cost > rule[1] and -1 or state.ends - now
  end

  function algorithm.charge(state, rule, now, at, cost)
    local window = rule[2]
    local ends = (floor(at / window) + 1) * window
    if ends <= now or ends < state.ends then return end
    local count = (ends == state.ends and state.count or 0) + cost
    if count > 0 then
      state.ends, state.count = ends, count
      call('SET', state.key, pack('<dd', ends, count), 'PX', ends - now + state.ahead + TTL_SLACK)
    else
      state.ends, state.count = 0, 0
      call('DEL', state.key)
    end
  end

  function algorithm.expires(state) return state.ends end

  function algorithm.held(state, rule, _, now)
    local count = used(state, now)
    local start = count > 0 and state.ends - rule[2] or nil
    return count, count < rule[1] and rule[1] - count or 0, start, start
  end

  function algorithm.count(state, rule, _, now, from, to)
    local window = rule[2]
    local first, last = math.max(now - now % window, from - from % window), math.min(now, to - to % window + window - 1)
    return last < first and 0 or used(state, now), first, last
  end

  return algorithm
end
