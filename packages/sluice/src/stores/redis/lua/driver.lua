-- Decides many calls in one, each of them atomically: the same steps as stores/memory.ts takes.
--
-- KEYS   one per charge, or two where the rule has a lease, in the order of the calls
-- ARGV   now in milliseconds ('' = the server's own time), the number of rules, then per rule: its
--        algorithm's letter, how many numbers follow, and these; then runs of alike calls until the end:
--        operation, how many calls, how many charges in each, for how many of the calls these are told (all, or
--        once for all), then per charge its rule, then for each call that is told, per charge: x, y, id
--          a  take x (y = 1: only look whether it fits)
--          p  look whether x fits                           s  settle: x more, at time y; 0 renews a lease
--             (with an id, under a rule with a window and a lease: x is what it really was; -1 renews)
--          t  status            c  count from x to y        d  forget
--          e  the newest entries from x to y, at most id of them
-- reply  now, then flat what each operation answers, per charge and window (-1 stands for none):
--          a, p  remaining, wait (0 fits, -1 never), milliseconds to reset, the charge's time less now
--          t     count, remaining, oldest, newest, milliseconds to reset
--          c     count, from, to
--          s     1; or 0 where a lease was to be renewed that has ended
--          e     one list of "cost:id" and time, newest first

local now = ARGV[1]
if now == '' then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
else
  now = tonumber(now)
end

local makers = { L = slidingLog, Z = slidingLogZset, C = slidingCells, F = fixedWindow, B = tokenBucket,
  H = concurrent }
local made, rules, next_arg = {}, {}, 3
for i = 1, tonumber(ARGV[2]) do
  local letter, count = ARGV[next_arg], tonumber(ARGV[next_arg + 1])
  local rule = { letter = letter, express = letter == 'L' and count == 2 }
  for n = 1, count do rule[n] = tonumber(ARGV[next_arg + 1 + n]) end
  rules[i] = rule
  next_arg = next_arg + 2 + count
end

-- Makes the rules' algorithms, which the express lane does without
local function prepare(charges)
  for c = 1, #charges do
    local rule = charges[c].rule
    if not rule.algorithm then
      made[rule.letter] = made[rule.letter] or (makers[rule.letter] or leased)(rule.letter, makers)
      rule.algorithm = made[rule.letter]
      rule.algorithm.prepare(rule)
    end
    charges[c].state = {}
  end
  charges.prepared = true
end

local reply, r, first_key = { now }, 1, 0

-- Loads a charge's state; tells the time it is for it, which is never behind what it has recorded.
-- Times to live run by the server's clock, and so begin as long ago as the state is ahead of it.
local function load(charge)
  local state, key = charge.state, first_key + charge.place
  charge.rule.algorithm.load(state, KEYS[key], charge.rule, KEYS[key + 1])
  local at = state.latest > now and state.latest or now
  state.ahead = at - now
  return state, at
end

local function reset_after(state, rule, w)
  local left = rule.algorithm.expires(state, rule, w) - now
  return left > 0 and left or 0
end

local function decide(charges, commit)
  local fits = true
  local place = r
  for c = 1, #charges do
    local charge = charges[c]
    local rule = charge.rule
    local state, at = load(charge)
    state.at = at
    if not rule.algorithm.check(state, rule, at, charge.x, reply, r) then fits = false end
    r = r + rule.windows * 4
  end
  for c = 1, #charges do
    local charge = charges[c]
    local rule, state, x = charge.rule, charge.state, charge.x
    local charged = fits and commit and x > 0 and charge.y == 0
    local ahead = state.at - now
    if charged then
      rule.algorithm.charge(state, rule, state.at, state.at, x, charge.id)
    end
    for w = 1, rule.windows do
      if charged then
        reply[place + 1] = reply[place + 1] - x
      elseif reply[place + 2] > 0 then
        reply[place + 2] = reply[place + 2] + ahead
      end
      reply[place + 3], reply[place + 4] = reset_after(state, rule, w), ahead
      place = place + 4
    end
  end
end

local function operate(operation, charges)
  for c = 1, #charges do
    local charge = charges[c]
    local rule, key = charge.rule, KEYS[first_key + charge.place]
    local algorithm = rule.algorithm
    if operation == 'd' then
      redis.call('UNLINK', key, #rule.letter == 2 and KEYS[first_key + charge.place + 1] or key)
    elseif operation == 'e' then
      r = r + 1
      reply[r] = algorithm.entries(key, rule, now, charge.x, charge.y, charge.id)
    else
      local state, at = load(charge)
      if operation == 's' then
        local held = charge.x ~= 0
        if algorithm.settle and charge.id ~= '' then
          held = algorithm.settle(state, rule, at, charge.y, charge.x, charge.id)
        -- Later than anything the key holds, after the clock stepped back: the reservation is forgotten.
        elseif charge.y <= at then
          held = algorithm.charge(state, rule, at, charge.y, charge.x, charge.id)
        end
        r = r + 1
        reply[r] = held == false and 0 or 1
      end
      for w = 1, operation == 's' and 0 or rule.windows do
        if operation == 't' then
          local count, remaining, oldest, newest = algorithm.held(state, rule, w, at)
          reply[r + 1], reply[r + 2], reply[r + 3], reply[r + 4] = count, remaining, oldest or -1, newest or -1
          reply[r + 5] = reset_after(state, rule, w)
          r = r + 5
        else
          reply[r + 1], reply[r + 2], reply[r + 3] = algorithm.count(state, rule, w, at, charge.x, charge.y)
          r = r + 3
        end
      end
    end
  end
end

while next_arg <= #ARGV do
  local operation, calls, count = ARGV[next_arg], tonumber(ARGV[next_arg + 1]), tonumber(ARGV[next_arg + 2])
  local told, charges, keys = tonumber(ARGV[next_arg + 3]), {}, 0
  next_arg = next_arg + 4
  for c = 1, count do
    charges[c] = { rule = rules[tonumber(ARGV[next_arg])], place = keys + 1 }
    next_arg = next_arg + 1
    keys = keys + #charges[c].rule.letter
  end
  local rule = charges[1].rule
  local decides, commit = operation == 'a' or operation == 'p', operation == 'a'
  for n = 1, calls do
    if n <= told then
      for c = 1, count do
        local charge = charges[c]
        charge.x, charge.y, charge.id = tonumber(ARGV[next_arg]), tonumber(ARGV[next_arg + 1]), ARGV[next_arg + 2]
        next_arg = next_arg + 3
      end
    end
    local first = charges[1]
    local by_express = decides and count == 1 and rule.express and first.y == 0
    if by_express and express(KEYS[first_key + 1], rule, now, first.x, commit, reply, r) then
      r = r + 4
    else
      if not charges.prepared then prepare(charges) end
      if decides then decide(charges, commit) else operate(operation, charges) end
    end
    first_key = first_key + keys
  end
end
return reply
