-- Sliding log, one member per request: algorithms/slidingLog.ts on a sorted set, for those who must see
-- each request. A member is "cost:id", its score the time in milliseconds. The member "" has the total
-- of all costs as its score, negated so that it sorts before every time.
-- Rule: limit, window. A charge's y is the request's id.
local function slidingLogZset()
  local call, match = redis.call, string.match
  local MEMBERS_AT_ONCE = 100
  local algorithm = {}

  local function cost_of(member) return tonumber(match(member, '^%d+')) end

  function algorithm.prepare(rule) rule.windows = 1 end

  function algorithm.load(state, key)
    local total = call('ZSCORE', key, '')
    state.key, state.latest, state.total, state.size = key, 0, 0, 0
    if total then
      state.total = -tonumber(total)
      state.latest = tonumber(call('ZREVRANGE', key, 0, 0, 'WITHSCORES')[2])
      state.size = call('ZCARD', key) - 1
    end
  end

  -- The cost of what has left the window, and how many members that is
  local function left(state, rule, now)
    if state.total == 0 then return 0, 0 end
    local members = call('ZCOUNT', state.key, 0, now - rule[2])
    if members == 0 or state.size == state.total then return members, members end
    local cost = 0
    for start = 1, members, MEMBERS_AT_ONCE do
      local stop = math.min(members, start + MEMBERS_AT_ONCE - 1)
      for _, member in ipairs(call('ZRANGE', state.key, start, stop)) do cost = cost + cost_of(member) end
    end
    return cost, members
  end

  -- The time of the request with whose leaving `over` units have left, after the first `gone` members
  local function time_that_frees(state, gone, over)
    local rank, stop = gone + 1, gone + MEMBERS_AT_ONCE
    if state.size == state.total then rank, stop, over = gone + over, gone + over, 1 end
    while true do
      local members = call('ZRANGE', state.key, rank, stop, 'WITHSCORES')
      for n = 1, #members, 2 do
        over = over - cost_of(members[n])
        if over <= 0 then return tonumber(members[n + 1]) end
      end
      rank, stop = stop + 1, stop + MEMBERS_AT_ONCE
    end
  end

  function algorithm.check(state, rule, now, cost, reply, r)
    local gone, members = left(state, rule, now)
    local count = state.total - gone
    local remaining = math.max(0, rule[1] - count)
    reply[r + 1], reply[r + 2] = remaining, 0
    if cost <= remaining then return true end
    reply[r + 2] = -1
    if cost <= rule[1] then
      reply[r + 2] = time_that_frees(state, members, count + cost - rule[1]) + rule[2] - now
    end
  end

  -- The cost recorded for this id, which may have been settled since
  local function recorded(state, at, id)
    for _, member in ipairs(call('ZRANGEBYSCORE', state.key, at, at)) do
      if match(member, '^%d+:(.*)$') == id then return cost_of(member), member end
    end
    return 0
  end

  function algorithm.charge(state, rule, now, at, cost, id)
    if now - at >= rule[2] then return end
    local gone, members = left(state, rule, now)
    local before, member = recorded(state, at, id)
    local after = math.max(0, before + cost)
    if members > 0 then call('ZREMRANGEBYRANK', state.key, 1, members) end
    if member then call('ZREM', state.key, member) end
    if after > 0 then call('ZADD', state.key, at, string.format('%.0f:', after) .. id) end
    state.total = state.total - gone + after - before
    if state.total == 0 then
      call('DEL', state.key)
      state.latest = 0
      return
    end
    call('ZADD', state.key, -state.total, '')
    call('PEXPIRE', state.key, rule[2] + state.ahead + TTL_SLACK)
    state.latest = tonumber(call('ZREVRANGE', state.key, 0, 0, 'WITHSCORES')[2])
  end

  function algorithm.expires(state, rule) return state.total == 0 and 0 or state.latest + rule[2] end

  function algorithm.held(state, rule, _, now)
    local gone, members = left(state, rule, now)
    local count = state.total - gone
    if count == 0 then return 0, rule[1] end
    return count, math.max(0, rule[1] - count), time_that_frees(state, members, 1), state.latest
  end

  function algorithm.count(state, rule, _, now, from, to)
    from, to = math.max(from, now - rule[2] + 1, 0), math.min(to, now)
    if to < from then return 0, from, to end
    if state.size == state.total then return call('ZCOUNT', state.key, from, to), from, to end
    local cost = 0
    for _, member in ipairs(call('ZRANGEBYSCORE', state.key, from, to)) do cost = cost + cost_of(member) end
    return cost, from, to
  end

  -- Times, ids and costs of the newest requests in a period, oldest first
  function algorithm.entries(key, rule, now, from, to, most)
    from = math.max(from, now - rule[2] + 1, 0)
    return call('ZREVRANGEBYSCORE', key, to, from, 'WITHSCORES', 'LIMIT', 0, most)
  end

  return algorithm
end
