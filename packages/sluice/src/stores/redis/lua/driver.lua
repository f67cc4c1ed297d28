-- Decides many calls in one, each of them atomically.
--
-- KEYS   one per charge, or two where what the rule holds has its own, in the order of the calls
-- ARGV   now in milliseconds ('' = the server's own time), the number of rules, then per rule: its
--        algorithm's letter, how many numbers follow, and these; then runs of alike calls until the end: the
--        operation, how many calls, '*' where they are told one by one, how many charges in each, per charge its
--        rule; then for the first call, or for each, per charge: x, y, id (of a and p: x, id). Where x is all there is
--        to tell of one charge, a capital operation, and no number of charges: A, P
--          a  take x                                        p  look whether x fits
--          l  take x, or where y = 1 look whether it fits   s  settle: x more, at time y; 0 renews a lease
--             (with an id, under a rule with a window and a lease: x is what it really was; -1 renews)
--          t  status            c  count from x to y        d  forget
--          e  the newest entries from x to y, at most id of them
-- reply  now, then flat what each operation answers, per charge (-1 stands for none):
--          A, P, a, p, l  remaining per window, where the charge was taken now;
--                         or -1 less what its time is ahead of now, then per window: remaining, wait (0 fits,
--                         -1 never), milliseconds to reset
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
  local operation, calls, each = ARGV[a], tonumber(ARGV[a + 1]), ARGV[a + 2] == '*'
  local count, per_charge, keys, lane, charges = 1, 1, 0, nil, nil
  a = a + 3
  if operation == 'A' then
    operation = 'a'
  elseif operation == 'P' then
    operation = 'p'
  else
    count, per_charge, a = tonumber(ARGV[a]), (operation == 'a' or operation == 'p') and 2 or 3, a + 1
  end
  local charged = a
  for c = 1, count do keys = keys + #letters[tonumber(ARGV[a + c - 1])] end
  a = a + count
  local rule, letter = rules[tonumber(ARGV[charged])], letters[tonumber(ARGV[charged])]
  if count == 1 and letter == 'L' then
    lane = per_charge == 1 and express or operation == 's' and settle
  elseif count == 1 and letter == 'R' and per_charge > 1 then
    lane = (operation == 'a' or operation == 's') and hold
  end

  local told, run_ends = count * per_charge, n + calls * keys
  local step = each and told or 0
  while n < run_ends do
    if lane then n, r, a = lane(rule, now, operation, reply, r, n, run_ends, a, step) end
    if n < run_ends then
      run = run or general(now, rules, letters, reply)
      charges = charges or run.charges(charged, count)
      for c = 1, count do
        local charge, place = charges[c], a + (c - 1) * per_charge
        charge.x, charge.y = tonumber(ARGV[place]), per_charge == 3 and tonumber(ARGV[place + 1]) or 0
        charge.id = per_charge > 1 and ARGV[place + per_charge - 1] or ''
      end
      n, r, a = n + keys, run.call(operation, charges, n, r), a + step
    end
  end
  if not each then a = a + told end
end
return reply
