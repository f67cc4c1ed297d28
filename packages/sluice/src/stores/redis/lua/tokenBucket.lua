-- Token bucket and leaky bucket: algorithms/tokenBucket.ts on a string of three doubles, the units
-- missing from a full bucket, when that was so, and since when it has not been full.
-- Rule: units that flow in per millisecond, units per token, burst.
local function tokenBucket()
  local call, pack, unpack, ceil, floor, max = redis.call, struct.pack, struct.unpack, math.ceil, math.floor, math.max
  local algorithm = {}

  function algorithm.prepare(rule) rule.windows = 1 end

  function algorithm.load(state, key)
    local text = call('GET', key)
    state.key, state.missing, state.latest, state.since = key, 0, 0, 0
    if text then state.missing, state.latest, state.since = unpack('<ddd', text) end
  end

  local function missing(state, rule, now)
    return max(0, state.missing - (now - state.latest) * rule[1])
  end

  function algorithm.check(state, rule, now, cost, reply, r)
    local short = missing(state, rule, now)
    local remaining = max(0, floor(rule[3] - short / rule[2]))
    reply[r + 1], reply[r + 2] = remaining, 0
    if cost <= remaining then return true end
    reply[r + 2] = cost > rule[3] and -1 or ceil((short + (cost - rule[3]) * rule[2]) / rule[1])
  end

  function algorithm.charge(state, rule, now, at, cost)
    local short = missing(state, rule, now)
    local since = short > 0 and state.since or now
    local units, after = cost * rule[2], short
    if cost > 0 then
      after = after + max(0, units - max(0, since - at) * rule[1])
    elseif at >= since then
      after = max(0, after + units)
    end
    if after == short then return end
    if after > 0 then
      state.missing, state.latest, state.since = after, now, math.min(since, at)
      call('SET', state.key, pack('<ddd', after, now, state.since), 'PX', ceil(after / rule[1]) + state.ahead + TTL_SLACK)
    else
      state.missing, state.latest, state.since = 0, 0, 0
      call('DEL', state.key)
    end
  end

  function algorithm.expires(state, rule) return state.latest + ceil(state.missing / rule[1]) end

  function algorithm.held(state, rule, _, now)
    local short = missing(state, rule, now)
    local count = ceil(short / rule[2])
    local remaining = max(0, floor(rule[3] - short / rule[2]))
    if count == 0 then return 0, remaining end
    return count, remaining, state.since, state.latest
  end

  -- A bucket keeps no history
  function algorithm.count() return 0, 0, 0 end

  return algorithm
end
