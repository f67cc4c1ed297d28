// Generated from lua/*.lua by scripts/lua.mjs; do not edit.
export const sha = "dc9ea500e16d9b6fc77a25f7d3ba78c5ec0e4317";
export const script = `local TTL_SLACK = ARGV[1] == '' and 1000 or 3600000
local function slidingLog()
local call, pack, unpack, spread = redis.call, struct.pack, struct.unpack, unpack
local sub, floor = string.sub, math.floor
local HEAD, CURSOR, CHUNK = 25, 22, 17
local ENTRIES_PER_CHUNK, DROPPED_AT_ONCE = 40, 100
local NARROW, WIDE = '<I3I2', '<I6I7'
local algorithm = {}
local function longest(rule)
local window = 0
for i = 2, #rule, 2 do
if rule[i] > window then window = rule[i] end
end
return window
end
function algorithm.load(key, rule)
local windows = #rule / 2
local state = { key = key, windows = windows, latest = 0 }
local text = call('HGET', key, 'h')
if not text then return state end
local cursors
state.latest, state.sum, state.first, state.tail, cursors = unpack('<ddI4I4B', text)
state.text, state.from = text, HEAD + cursors * CURSOR + 1
for w = 1, windows do
local window, gone, chunk, entry
if w <= cursors then
window, gone, chunk, entry = unpack('<ddI4I2', text, HEAD + (w - 1) * CURSOR + 1)
end
if window ~= rule[w * 2] then
chunk, entry = state.first, 0
end
state[w] = { gone = gone, chunk = chunk, entry = entry }
end
return state
end
local function open(state, number)
local text, from = state.text, state.from
if number ~= state.tail then
if state.read ~= number then
state.read, state.read_text = number, call('HGET', state.key, number)
end
text, from = state.read_text, 1
end
local base, before, wide = unpack('<ddB', text, from)
local format, width = NARROW, 5
if wide == 1 then format, width = WIDE, 13 end
from = from + CHUNK
return text, from, (#text - from + 1) / width, format, width, base, before
end
local function seek(state, low, x, by_cost)
local high = state.tail
while low < high do
local middle = floor((low + high + 1) / 2)
local _, _, _, _, _, base, before = open(state, middle)
if (by_cost and before or base) <= x then low = middle else high = middle - 1 end
end
return low
end
local function advance(state, rule, w, now)
local cursor, left = state[w], now - rule[w * 2]
local number, entry, gone = cursor.chunk, cursor.entry, cursor.gone
if state.latest <= left then
local _, _, count = open(state, state.tail)
cursor.chunk, cursor.entry, cursor.gone = state.tail, count, state.sum
return cursor
end
local hops = 0
while true do
local text, from, count, format, width, base, before = open(state, number)
if entry == 0 then gone = before end
local last = left - base
while entry < count do
local offset, cost = unpack(format, text, from + entry * width)
if offset > last then
cursor.chunk, cursor.entry, cursor.gone = number, entry, gone
return cursor
end
gone, entry = gone + cost, entry + 1
end
hops = hops + 1
number, entry = number + 1, 0
if hops > 1 then number = seek(state, number, left) end
end
end
local function time_of_cost(state, cursor, target)
local number, entry, cost_before = cursor.chunk, cursor.entry, cursor.gone
while true do
local text, from, count, format, width, base, before = open(state, number)
if entry == 0 then cost_before = before end
while entry < count do
local offset, cost = unpack(format, text, from + entry * width)
cost_before = cost_before + cost
if cost_before >= target then return base + offset end
entry = entry + 1
end
number, entry = seek(state, number + 1, target - 1, true), 0
end
end
function algorithm.check(state, rule, now, cost, reply, r)
local fits = true
for w = 1, state.windows do
local limit, count, cursor = rule[w * 2 - 1], 0, nil
if state.text then
cursor = advance(state, rule, w, now)
count = state.sum - cursor.gone
end
local remaining = limit > count and limit - count or 0
reply[r + 1], reply[r + 2] = remaining, 0
if cost > remaining then
fits = false
if cost > limit then
reply[r + 2] = -1
else
reply[r + 2] = time_of_cost(state, cursor, cursor.gone + count + cost - limit) + rule[w * 2] - now
end
end
r = r + 4
end
return fits
end
local function renew(state, rule)
call('PEXPIRE', state.key, longest(rule) * 2 + TTL_SLACK)
end
local function save(state, rule, tail, number, chunk)
local head = { pack('<ddI4I4B', state.latest, state.sum, state.first, state.tail, state.windows) }
for w = 1, state.windows do
head[w + 1] = pack('<ddI4I2', rule[w * 2], state[w].gone, state[w].chunk, state[w].entry)
end
head[#head + 1] = tail
state.text, state.from = table.concat(head), HEAD + state.windows * CURSOR + 1
if chunk then
call('HSET', state.key, 'h', state.text, number, chunk)
else
call('HSET', state.key, 'h', state.text)
end
end
local function entry_of(base, at, cost)
local offset = at - base
if offset < 16777216 and cost < 65536 then return pack(NARROW, offset, cost), 0 end
return pack(WIDE, offset, cost), 1
end
local function new_chunk(at, before, cost)
local entry, wide = entry_of(at, at, cost)
return pack('<ddB', at, before, wide) .. entry
end
local function start(state, rule, at, cost)
state.latest, state.sum, state.first, state.tail = at, cost, 1, 1
for w = 1, state.windows do state[w] = { gone = 0, chunk = 1, entry = 0 } end
save(state, rule, new_chunk(at, 0, cost))
renew(state, rule)
end
local function drop_left(state)
local keep = state.tail
for w = 1, state.windows do keep = math.min(keep, state[w].chunk) end
keep = math.min(keep, state.first + DROPPED_AT_ONCE)
if keep == state.first then return end
local fields = {}
for number = state.first, keep - 1 do fields[#fields + 1] = number end
call('HDEL', state.key, spread(fields))
state.first = keep
end
local function append(state, rule, at, cost)
local before = state.latest
drop_left(state)
local text, from, count, format, width, base, cost_before = open(state, state.tail)
local kept = count
local total = cost
if at == before then
local _, last = unpack(format, text, from + (count - 1) * width)
kept, total = count - 1, cost + last
end
state.latest, state.sum = at, state.sum + cost
local entry, wide = entry_of(base, at, total)
local chunk = sub(text, from - CHUNK, from + kept * width - 1)
if kept == 0 then
save(state, rule, new_chunk(at, cost_before, total))
elseif kept < ENTRIES_PER_CHUNK and (width == 13 or wide == 0) then
save(state, rule, chunk .. (width == 13 and pack(WIDE, at - base, total) or entry))
else
state.tail = state.tail + 1
save(state, rule, new_chunk(at, state.sum - total, total), state.tail - 1, chunk)
end
local quarter = floor(longest(rule) / 4) + 1
if floor(before / quarter) ~= floor(at / quarter) then renew(state, rule) end
end
local function changed(text, from, count, format, width, base, before, entry, found, at, cost)
local fits = at >= base and (width == 13 or (cost < 65536 and at - base < 16777216))
if fits then
return sub(text, from - CHUNK, from + entry * width - 1) .. pack(format, at - base, cost)
.. sub(text, from + (entry + (found and 1 or 0)) * width, from + count * width - 1)
end
local new_base = math.min(base, at)
local parts = { pack('<ddB', new_base, before, 1) }
for n = 0, count - 1 do
local offset, old = unpack(format, text, from + n * width)
if n == entry then parts[#parts + 1] = pack(WIDE, at - new_base, cost) end
if n ~= entry or not found then parts[#parts + 1] = pack(WIDE, base + offset - new_base, old) end
end
if entry == count then parts[#parts + 1] = pack(WIDE, at - new_base, cost) end
return table.concat(parts)
end
local function trim_tail(state)
while true do
local text, from, count, format, width, base = open(state, state.tail)
local offset, cost
if count > 0 then offset, cost = unpack(format, text, from + (count - 1) * width) end
if count > 0 and cost > 0 then
state.latest = base + offset
break
elseif count > 0 then
state.text = sub(text, 1, from + (count - 1) * width - 1)
elseif state.tail == state.first then
state.text = nil
return
else
state.tail = state.tail - 1
state.text, state.from = call('HGET', state.key, state.tail), 1
call('HDEL', state.key, state.tail)
end
end
local _, _, count = open(state, state.tail)
for w = 1, state.windows do
local cursor = state[w]
if cursor.chunk > state.tail or (cursor.chunk == state.tail and cursor.entry > count) then
cursor.chunk, cursor.entry = state.tail, count
end
end
end
local function adjust(state, rule, now, at, cost)
local number = seek(state, state.first, at)
local text, from, count, format, width, base, before = open(state, number)
local entry, found, old = 0, false, 0
while entry < count do
local offset, recorded = unpack(format, text, from + entry * width)
if base + offset >= at then
found, old = base + offset == at, recorded
break
end
entry = entry + 1
end
if not found then old = 0 end
local difference = math.max(cost, -old)
if difference == 0 then return end
local chunk = changed(text, from, count, format, width, base, before, entry, found, at, old + difference)
state.sum = state.sum + difference
for w = 1, state.windows do
local cursor = state[w]
if now - at >= rule[w * 2] then
cursor.gone = cursor.gone + difference
if not found and cursor.chunk == number then cursor.entry = cursor.entry + 1 end
end
end
for later = number + 1, state.tail - 1 do
local stored = call('HGET', state.key, later)
local its_base, its_before, wide = unpack('<ddB', stored)
call('HSET', state.key, later, pack('<ddB', its_base, its_before + difference, wide) .. sub(stored, CHUNK + 1))
end
state.read = nil
if number < state.tail then
local tail_base, tail_before, wide = unpack('<ddB', state.text, state.from)
local tail = pack('<ddB', tail_base, tail_before + difference, wide) .. sub(state.text, state.from + CHUNK)
save(state, rule, tail, number, chunk)
return
end
state.text, state.from = chunk, 1
trim_tail(state)
if state.text then
save(state, rule, sub(state.text, state.from))
else
state.latest = 0
call('UNLINK', state.key)
end
end
function algorithm.charge(state, rule, now, at, cost)
if now - at >= longest(rule) then return end
if state.text and state.latest <= now - longest(rule) then
call('UNLINK', state.key)
state.text = nil
end
if not state.text then
if cost > 0 then start(state, rule, at, cost) end
return
end
for w = 1, state.windows do advance(state, rule, w, now) end
if cost > 0 and at >= state.latest then
append(state, rule, at, cost)
else
adjust(state, rule, now, at, cost)
end
end
function algorithm.expires(state, rule, w) return state.text and state.latest + rule[w * 2] or 0 end
function algorithm.held(state, rule, w, now)
local limit, count, cursor = rule[w * 2 - 1], 0, nil
if state.text then
cursor = advance(state, rule, w, now)
count = state.sum - cursor.gone
end
if count == 0 then return 0, limit end
return count, math.max(0, limit - count), time_of_cost(state, cursor, cursor.gone + 1), state.latest
end
local function cost_before_time(state, time)
local text, from, count, format, width, base, before = open(state, seek(state, state.first, time - 1))
for entry = 0, count - 1 do
local offset, cost = unpack(format, text, from + entry * width)
if base + offset >= time then break end
before = before + cost
end
return before
end
function algorithm.count(state, rule, w, now, from, to)
from, to = math.max(from, now - rule[w * 2] + 1, 0), math.min(to, now)
if not state.text or to < from then return 0, from, to end
return cost_before_time(state, to + 1) - cost_before_time(state, from), from, to
end
return algorithm
end
local function slidingLogZset()
local call, match = redis.call, string.match
local MEMBERS_AT_ONCE = 100
local algorithm = {}
local function cost_of(member) return tonumber(match(member, '^%d+')) end
function algorithm.load(key)
local state = { key = key, windows = 1, latest = 0, total = 0 }
local total = call('ZSCORE', key, '')
if total then
state.total = -tonumber(total)
state.latest = tonumber(call('ZREVRANGE', key, 0, 0, 'WITHSCORES')[2])
state.size = call('ZCARD', key) - 1
end
return state
end
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
if after > 0 then call('ZADD', state.key, at, after .. ':' .. id) end
state.total = state.total - gone + after - before
if state.total == 0 then
call('DEL', state.key)
state.latest = 0
return
end
call('ZADD', state.key, -state.total, '')
call('PEXPIRE', state.key, rule[2] + TTL_SLACK)
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
function algorithm.entries(key, rule, now, from, to, most)
from = math.max(from, now - rule[2] + 1, 0)
return call('ZREVRANGEBYSCORE', key, to, from, 'WITHSCORES', 'LIMIT', 0, most)
end
return algorithm
end
local function slidingCells()
local call, pack, unpack, ceil, floor, max, min =
redis.call, struct.pack, struct.unpack, math.ceil, math.floor, math.max, math.min
local algorithm = {}
function algorithm.load(key, rule)
local text = call('HGET', key, 'm')
local first, ends, total = 0, 0, 0
if text then first, ends, total = unpack('<ddd', text) end
return {
key = key, latest = max(0, ends - 1) * rule[3], windows = 1, first = first, ends = ends, total = total, cells = {},
}
end
local function count_of(state, rule, k)
local count = state.cells[k]
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
call('PEXPIRE', state.key, leaves(rule, state.ends - 1) - now + TTL_SLACK)
end
function algorithm.expires(state, rule)
for k = state.ends - 1, state.first, -1 do
if count_of(state, rule, k) > 0 then return leaves(rule, k) end
end
return 0
end
function algorithm.held(state, rule, _, now)
local oldest, newest
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
local function fixedWindow()
local call, pack, unpack, floor = redis.call, struct.pack, struct.unpack, math.floor
local algorithm = {}
function algorithm.load(key, rule)
local text = call('GET', key)
if not text then return { key = key, latest = 0, windows = 1, ends = 0, count = 0 } end
local ends, count = unpack('<dd', text)
return { key = key, latest = ends - rule[2], windows = 1, ends = ends, count = count }
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
call('SET', state.key, pack('<dd', ends, count), 'PX', ends - now + TTL_SLACK)
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
local function tokenBucket()
local call, pack, unpack, ceil, floor, max = redis.call, struct.pack, struct.unpack, math.ceil, math.floor, math.max
local algorithm = {}
function algorithm.load(key)
local text = call('GET', key)
local missing, at, since = 0, 0, 0
if text then missing, at, since = unpack('<ddd', text) end
return { key = key, latest = at, windows = 1, missing = missing, since = since }
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
call('SET', state.key, pack('<ddd', after, now, state.since), 'PX', ceil(after / rule[1]) + TTL_SLACK)
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
return algorithm
end
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
return reply`;
