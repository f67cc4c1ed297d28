-- Decides many calls in one, each of them atomically: the same steps as stores/memory.ts takes.
--
-- KEYS   one per charge, in the order of the calls
-- ARGV   now in milliseconds ('' = the server's own time), the number of rules, then per rule: its
--        algorithm's letter, how many numbers follow, and these; then runs of alike calls until the end:
--        operation, how many calls, how many charges in each, then per charge: rule, x, y, id
--          a  take x            p  look whether x fits      s  settle: x more, at time y
--          t  status            c  count from x to y        d  forget
--          e  the newest entries from x to y, at most id of them
-- reply  now, then flat what each operation answers, per charge and window (-1 stands for none):
--          a, p  remaining, wait (0 fits, -1 never), milliseconds to reset, the charge's time less now
--          t     count, remaining, oldest, newest, milliseconds to reset
--          c     count, from, to
--          e     one list of "cost:id" and time, newest first

local now = ARGV[1]
if now == '' then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
else
  now = tonumber(now)
end

local makers = { L = slidingLog, Z = slidingLogZset, C = slidingCells, F = fixedWindow, B = tokenBucket }
local made, rules, next_arg = {}, {}, 3
for i = 1, tonumber(ARGV[2]) do
  local letter, count = ARGV[next_arg], tonumber(ARGV[next_arg + 1])
  local rule = {}
  for n = 1, count do rule[n] = tonumber(ARGV[next_arg + 1 + n]) end
  made[letter] = made[letter] or makers[letter]()
  rule.algorithm = made[letter]
  rules[i] = rule
  next_arg = next_arg + 2 + count
end

local reply, r, first_key = { now }, 1, 0
local states, places = {}, {}

-- A charge's state, and the time it is for it: never behind what it has recorded
local function load(charge, c)
  local state = charge.rule.algorithm.load(KEYS[first_key + c], charge.rule)
  return state, state.latest > now and state.latest or now
end

local function reset_after(state, rule, w)
  local left = rule.algorithm.expires(state, rule, w) - now
  return left > 0 and left or 0
end

local function decide(charges, commit)
  local fits = true
  for c = 1, #charges do
    local charge = charges[c]
    local state, at = load(charge, c)
    states[c], places[c], state.at = state, r, at
    if not charge.rule.algorithm.check(state, charge.rule, at, charge.x, reply, r) then fits = false end
    for _ = 1, state.windows do
      if reply[r + 2] > 0 then reply[r + 2] = reply[r + 2] + at - now end
      reply[r + 4] = at - now
      r = r + 4
    end
  end
  for c = 1, #charges do
    local charge, state, place = charges[c], states[c], places[c]
    local rule, x = charge.rule, charge.x
    local charged = fits and commit and x > 0
    if charged then rule.algorithm.charge(state, rule, state.at, state.at, x, charge.id) end
    for w = 1, state.windows do
      if charged then reply[place + 1] = reply[place + 1] - x end
      reply[place + 3] = reset_after(state, rule, w)
      place = place + 4
    end
  end
end

local function operate(operation, charges)
  if operation == 'a' or operation == 'p' then return decide(charges, operation == 'a') end
  for c = 1, #charges do
    local charge, key = charges[c], KEYS[first_key + c]
    local rule = charge.rule
    local algorithm = rule.algorithm
    if operation == 'd' then
      redis.call('UNLINK', key)
    elseif operation == 's' then
      local state, at = load(charge, c)
      -- Later than anything the key holds, after the clock stepped back: the reservation is forgotten.
      if charge.y <= at then algorithm.charge(state, rule, at, charge.y, charge.x, charge.id) end
    elseif operation == 't' then
      local state, at = load(charge, c)
      for w = 1, state.windows do
        local count, remaining, oldest, newest = algorithm.held(state, rule, w, at)
        reply[r + 1], reply[r + 2], reply[r + 3], reply[r + 4] = count, remaining, oldest or -1, newest or -1
        reply[r + 5] = reset_after(state, rule, w)
        r = r + 5
      end
    elseif operation == 'c' then
      local state, at = load(charge, c)
      for w = 1, state.windows do
        reply[r + 1], reply[r + 2], reply[r + 3] = algorithm.count(state, rule, w, at, charge.x, charge.y)
        r = r + 3
      end
    else
      r = r + 1
      reply[r] = algorithm.entries(key, rule, now, charge.x, charge.y, charge.id)
    end
  end
end

while next_arg <= #ARGV do
  local operation, calls, count = ARGV[next_arg], tonumber(ARGV[next_arg + 1]), tonumber(ARGV[next_arg + 2])
  local charges = {}
  next_arg = next_arg + 3
  for c = 1, count do
    charges[c] = {
      rule = rules[tonumber(ARGV[next_arg])],
      x = tonumber(ARGV[next_arg + 1]),
      y = tonumber(ARGV[next_arg + 2]),
      id = ARGV[next_arg + 3],
    }
    next_arg = next_arg + 4
  end
  for _ = 1, calls do
    operate(operation, charges)
    first_key = first_key + count
  end
end
return reply
