-- Concurrent: algorithms/concurrent.ts on a sorted set of leases, each a member ":id" with its end as the
-- score. A lease of more than one slot has, besides, the member "#:id" with the slots it has above one,
-- negated, as its score; and the member "" then has the sum of these. So negative scores are numbers of slots,
-- and positive ones times. Where all leases have one slot, which is usual, there are only times.
-- Rule: limit, lease.
local function concurrent()
  local call, max = redis.call, math.max
  local algorithm = {}

  function algorithm.prepare(rule) rule.windows = 1 end

  function algorithm.load(state, key, rule)
    state.key, state.first, state.extra, state.ends, state.latest = key, nil, 0, 0, 0
    local newest = call('ZREVRANGE', key, 0, 0, 'WITHSCORES')[2]
    if newest then
      state.ends = tonumber(newest)
      state.latest = state.ends - rule[2]
    end
  end

  -- Reads the lowest score: the earliest end or, where leases have slots above one, these negated
  local function read_first(state)
    if state.first or state.ends == 0 then return end
    state.first = tonumber(call('ZRANGE', state.key, 0, 0, 'WITHSCORES')[2])
    if state.first < 0 then state.extra = -state.first end
  end

  local function extra_of(state, lease)
    return state.extra > 0 and -(tonumber(call('ZSCORE', state.key, '#' .. lease) or 0)) or 0
  end

  -- How many slots are held now, and how many leases hold them
  local function taken(state, now)
    if state.ends <= now then return 0, 0 end
    read_first(state)
    if state.extra == 0 then
      local leases = state.first > now and call('ZCARD', state.key) or call('ZCOUNT', state.key, '(' .. now, '+inf')
      return leases, leases
    end
    local leases = call('ZCOUNT', state.key, '(' .. now, '+inf')
    local slots = leases + state.extra
    for _, lease in ipairs(call('ZRANGEBYSCORE', state.key, 0, now)) do slots = slots - extra_of(state, lease) end
    return slots, leases
  end

  -- When `over` more slots are free: the leases end one by one
  local function time_that_frees(state, leases, over)
    if state.extra == 0 then
      return tonumber(call('ZREVRANGE', state.key, leases - over, leases - over, 'WITHSCORES')[2])
    end
    for rank = leases - 1, 0, -1 do
      local lease = call('ZREVRANGE', state.key, rank, rank, 'WITHSCORES')
      over = over - 1 - extra_of(state, lease[1])
      if over <= 0 then return tonumber(lease[2]) end
    end
  end

  function algorithm.check(state, rule, now, cost, reply, r)
    local slots, leases = taken(state, now)
    local remaining = max(0, rule[1] - slots)
    reply[r + 1], reply[r + 2] = remaining, 0
    if cost <= remaining then return true end
    reply[r + 2] = cost > rule[1] and -1 or time_that_frees(state, leases, slots + cost - rule[1]) - now
  end

  -- Sets how many slots above one a lease has
  local function set_extra(state, lease, before, after)
    if before == after then return end
    state.extra = state.extra + after - before
    if after > 0 then call('ZADD', state.key, -after, '#' .. lease) else call('ZREM', state.key, '#' .. lease) end
    if state.extra > 0 then call('ZADD', state.key, -state.extra, '') else call('ZREM', state.key, '') end
  end

  local function drop_ended(state, now)
    read_first(state)
    if not state.first or (state.extra == 0 and state.first > now) then return end
    if state.extra > 0 then
      for _, lease in ipairs(call('ZRANGEBYSCORE', state.key, 0, now)) do
        set_extra(state, lease, extra_of(state, lease), 0)
      end
    end
    call('ZREMRANGEBYSCORE', state.key, 0, now)
  end

  -- The key's time to live is two leases, so that it must be renewed only when time has come to another lease
  local function keep(state, rule, ends)
    if ends <= state.ends then return end
    local lease = rule[2]
    if state.ends == 0 or state.ends - state.ends % lease ~= ends - ends % lease then
      call('PEXPIRE', state.key, lease * 2 + state.ahead + TTL_SLACK)
    end
    state.ends = ends
  end

  -- What has ended goes last: a key that goes and comes back within one script is an error while its slot moves
  function algorithm.charge(state, rule, now, at, cost, id)
    local lease, ends = ':' .. id, at + rule[2]
    if cost == 1 and ends > now and call('ZADD', state.key, 'NX', ends, lease) == 1 then
      keep(state, rule, ends)
      drop_ended(state, now)
      return
    end
    read_first(state)
    ends = tonumber(call('ZSCORE', state.key, lease) or nil)
    if ends and ends <= now then
      drop_ended(state, now)
      ends = nil
    end
    local before = ends and 1 + extra_of(state, lease) or 0
    local after = max(0, before + cost)
    if before == 0 then ends = at + rule[2] elseif cost == 0 then ends = now + rule[2] end
    if after > 0 and ends > now then
      if before == 0 or cost == 0 then call('ZADD', state.key, ends, lease) end
      set_extra(state, lease, max(0, before - 1), after - 1)
      keep(state, rule, ends)
    elseif before > 0 then
      set_extra(state, lease, before - 1, 0)
      call('ZREM', state.key, lease)
    end
    drop_ended(state, now)
    return before > 0 or cost ~= 0
  end

  function algorithm.expires(state) return state.ends end

  function algorithm.held(state, rule, _, now)
    local slots, leases = taken(state, now)
    if slots == 0 then return 0, rule[1] end
    local oldest = time_that_frees(state, leases, 1)
    return slots, max(0, rule[1] - slots), oldest - rule[2], state.latest
  end

  -- Who held a slot before is not kept
  function algorithm.count() return 0, 0, 0 end

  return algorithm
end
