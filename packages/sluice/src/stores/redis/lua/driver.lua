-- Decides many calls in one, each of them atomically.
--
-- KEYS   one per charge, or two where what the rule holds has its own, in the order of the calls
-- ARGV   now in milliseconds ('' = the server's own time), the number of rules, then per rule: its
--        algorithm's letter, how many numbers follow, and these; then runs of alike calls until the end:
--          A, P  take x, or look whether it fits, one charge per call: how many calls, rule, x
--                (x = '*': one x for each of the calls follows)
--        or any operation: its letter, how many calls, how many charges in each, '*' where the calls are told one by
--        one, then per charge its rule, then for the first call, or for each, per charge: x, y, id
--          a  take x (y = 1: only look whether it fits)
--          p  look whether x fits                           s  settle: x more, at time y; 0 renews a lease
--             (with an id, under a rule with a window and a lease: x is what it really was; -1 renews)
--          t  status            c  count from x to y        d  forget
--          e  the newest entries from x to y, at most id of them
-- reply  now, then flat what each operation answers, per charge (-1 stands for none):
--          A, P, a, p  remaining per window, where the charge was taken now;
--                      or -1 less what its time is ahead of now, then per window: remaining, wait (0 fits, -1 never),
--                      milliseconds to reset
--          t     per window: count, remaining, oldest, newest, milliseconds to reset
--          c     per window: count, from, to
--          s     1; or 0 where a lease was to be renewed that has ended
--          e     one list of "cost:id" and time, newest first
--
-- express.lua comes first: a call that it can decide makes nothing else, since to make a function costs more than
-- to run one. Whatever it leaves is decided by general.lua.

local now = ARGV[1]
if now == '' then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
else
  now = tonumber(now)
end

local rules, letters, a = {}, {}, 3
for i = 1, tonumber(ARGV[2]) do
  local count = tonumber(ARGV[a + 1])
  local rule = { unpack(ARGV, a + 2, a + 1 + count) }
  for n = 1, count do rule[n] = tonumber(rule[n]) end
  rules[i], letters[i] = rule, ARGV[a]
  a = a + 2 + count
end

local reply, r, n, run = { now }, 1, 0, nil
while a <= #ARGV do
  local operation, calls = ARGV[a], tonumber(ARGV[a + 1])
  if operation == 'A' or operation == 'P' then
    local i, x, commit, charges = tonumber(ARGV[a + 2]), ARGV[a + 3], operation == 'A', nil
    local each, run_ends = x == '*', n + calls
    a = a + 4
    while n < run_ends do
      local last = run_ends
      if each then x, a, last = ARGV[a], a + 1, n + 1 end
      local cost = tonumber(x)
      if letters[i] == 'L' then n, r = express(rules[i], now, cost, commit, reply, r, n, last) end
      if n < last then
        run = run or general(now, reply)
        charges = charges or { { rule = rules[i], letter = letters[i], place = 1, y = 0, id = '' } }
        charges[1].x = cost
        n, r = n + 1, run(commit and 'a' or 'p', charges, n, r)
      end
    end
  else
    local charges, count, told, keys = {}, tonumber(ARGV[a + 2]), ARGV[a + 3] == '*' and calls or 1, 0
    a = a + 4
    for c = 1, count do
      local i = tonumber(ARGV[a])
      charges[c] = { rule = rules[i], letter = letters[i], place = keys + 1 }
      a, keys = a + 1, keys + #letters[i]
    end
    local settles = operation == 's'
    local holds = count == 1 and told == calls and charges[1].letter == 'R' and (settles or operation == 'a')
    for call = 1, calls do
      local length
      if holds then
        local x, y, id = tonumber(ARGV[a]), tonumber(ARGV[a + 1]), ARGV[a + 2]
        if x > 0 and id ~= '' and (settles or y == 0) then
          length = hold(charges[1].rule, now, KEYS[n + 1], settles, x, y, id, reply, r)
          if length then a = a + 3 end
        end
      end
      if not length then
        for c = 1, call <= told and count or 0 do
          local charge = charges[c]
          charge.x, charge.y, charge.id = tonumber(ARGV[a]), tonumber(ARGV[a + 1]), ARGV[a + 2]
          a = a + 3
        end
        run = run or general(now, reply)
        length = run(operation, charges, n, r)
      end
      n, r = n + keys, length
    end
  end
end
return reply
