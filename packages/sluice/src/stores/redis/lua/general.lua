-- Every operation on rules of every kind: the same steps as stores/memory.ts takes, by the algorithms' pairs.
local makers = { L = slidingLog, Z = slidingLogZset, C = slidingCells, F = fixedWindow, B = tokenBucket,
  H = concurrent }
local made, r, first_key = {}, 0, 0

-- The charges of a run of calls, whose rules are told from the ath argument on
local function make(a, count)
  local charges, place = {}, 1
  for c = 1, count do
    local i = tonumber(ARGV[a + c - 1])
    local rule, letter = rules[i], letters[i]
    if not rule.algorithm then
      made[letter] = made[letter] or (makers[letter] or leased)(letter, makers)
      rule.algorithm = made[letter]
      rule.algorithm.prepare(rule)
    end
    charges[c] = { rule = rule, letter = letter, place = place, state = {} }
    place = place + #letter
  end
  return charges
end

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
    if not rule.algorithm.check(state, rule, at, charge.x, reply, r + 1) then fits = false end
    r = r + 1 + rule.windows * 3
  end
  for c = 1, #charges do
    local charge = charges[c]
    local rule, state, x = charge.rule, charge.state, charge.x
    local charged = fits and commit and x > 0 and charge.y == 0
    local ahead = state.at - now
    if charged then
      rule.algorithm.charge(state, rule, state.at, state.at, x, charge.id)
    end
    reply[place + 1] = -1 - ahead
    for w = 1, rule.windows do
      if charged then
        reply[place + 2] = reply[place + 2] - x
      elseif reply[place + 3] > 0 then
        reply[place + 3] = reply[place + 3] + ahead
      end
      reply[place + 4] = reset_after(state, rule, w)
      place = place + 3
    end
    place = place + 1
  end
end

local function operate(operation, charges)
  for c = 1, #charges do
    local charge = charges[c]
    local rule, key = charge.rule, KEYS[first_key + charge.place]
    local algorithm = rule.algorithm
    if operation == 'd' then
      redis.call('UNLINK', key, #charge.letter == 2 and KEYS[first_key + charge.place + 1] or key)
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

-- One call: the keys of its charges come after the nth. Answers the length of the reply.
local function answer(operation, charges, n, length)
  first_key, r = n, length
  if operation == 'a' or operation == 'l' or operation == 'p' then
    decide(charges, operation ~= 'p')
  else
    operate(operation, charges)
  end
  return r
end

return { charges = make, call = answer }
