// Generated from lua/*.lua by scripts/lua.mjs; do not edit.
export const sha = "413d1670eac2f506287aa9aa906aa705127c7ffc";
export const script = `local TTL_SLACK = ARGV[1] == '' and 1000 or 3600000
local CHUNK_BYTES, NO_LOG = 140, string.rep('\\0', 62)
local function amend(text, at, cost)
local pack, unpack, sub = struct.pack, struct.unpack, string.sub
local sum, written, cursors, wide, base = unpack('<dI2BBI6', text)
local format, width, from, offset = '<I3I2', 5, 35 + cursors * 28, at - base
if wide == 1 then format, width = '<I6I7', 13 end
for w = 1, cursors do
local oldest = unpack('<I6', text, 23 + w * 28)
if oldest == 0 or oldest > at then return end
end
local last_cost
for place = #text - width + 1, from, -width do
local its_offset, its_cost = unpack(format, text, place)
last_cost = last_cost or its_cost
if its_offset == offset then
local new_cost, entries = its_cost + cost, (#text - from + 1) / width
sum = sum + (entries - written) * last_cost + cost
if new_cost <= 0 or wide == 0 and new_cost > 65535 or sum > 9007199254740991 then return end
return pack('<dI2', sum, entries) .. sub(text, 11, place - 1) .. pack(format, offset, new_cost)
.. sub(text, place + width)
elseif its_offset < offset then
return
end
end
end
local function general(now, rules, letters, reply)
local function slidingLogRare(open, advance)
local call, pack, unpack, spread = redis.call, struct.pack, struct.unpack, unpack
local sub, floor, max, min = string.sub, math.floor, math.max, math.min
local DROPPED_AT_ONCE, LONGEST_CHUNK = 100, CHUNK_BYTES * 4
local rare = {}
function rare.seek(state, low, x, by_cost)
local high = state.tail
while low < high do
local middle = floor((low + high + 1) / 2)
local _, _, _, _, _, base, before = open(state, middle)
if (by_cost and before or base) <= x then low = middle else high = middle - 1 end
end
return low
end
function rare.time_of_cost(state, w, target)
local cost_before, number, entry = state[w * 4 - 3], state[w * 4 - 1], state[w * 4]
while true do
local text, from, count, format, width, base, before = open(state, number)
if entry == 0 then cost_before = before end
while entry < count do
local offset, cost = unpack(format, text, from + entry * width)
cost_before = cost_before + cost
if cost_before >= target then return base + offset end
entry = entry + 1
end
number, entry = rare.seek(state, number + 1, target - 1, true), 0
end
end
function rare.drop_left(state, rule)
local keep = state.first + DROPPED_AT_ONCE
for w = 1, rule.windows do keep = min(keep, state[w * 4 - 1]) end
if keep == state.first then return end
local fields = {}
for number = state.first, keep - 1 do fields[#fields + 1] = pack('<I4', number) end
call('HDEL', state.key, spread(fields))
state.first = keep
end
function rare.rebase(state, rule)
local slowest = rule.slowest * 4
local zero, number, cut = state[slowest - 3], state[slowest - 1], state[slowest]
for chunk_number = state.first, state.tail - 1 do
local field = pack('<I4', chunk_number)
local chunk = call('HGET', state.key, field)
local wide, base, before = unpack('<BI6d', chunk)
local from = 16
if chunk_number == number then before, from = zero, 16 + cut * (wide == 1 and 13 or 5) end
call('HSET', state.key, field, pack('<BI6d', wide, base, before - zero) .. sub(chunk, from))
end
if number == state.tail then
state.before, state.from = zero, state.from + cut * (state.wide == 1 and 13 or 5)
end
state.before, state.sum, state.read = state.before - zero, state.sum - zero, 0
for w = 1, rule.windows do
local c = w * 4 - 3
state[c] = state[c] - zero
if state[c + 2] == number then state[c + 3] = state[c + 3] - cut end
end
end
local function changed(text, from, count, format, width, base, entry, found, at, cost)
local rest = entry + (found and 1 or 0)
if at >= base and (width == 13 or (cost < 65536 and at - base < 16777216)) then
local entries = sub(text, from, from + entry * width - 1) .. pack(format, at - base, cost)
return entries .. sub(text, from + rest * width, from + count * width - 1), base, width == 13 and 1 or 0
end
local new_base = min(base, at)
local parts = {}
for n = 0, count - 1 do
local offset, old = unpack(format, text, from + n * width)
if n == entry then parts[#parts + 1] = pack('<I6I7', at - new_base, cost) end
if n < entry or n >= rest then parts[#parts + 1] = pack('<I6I7', base + offset - new_base, old) end
end
if entry == count then parts[#parts + 1] = pack('<I6I7', at - new_base, cost) end
return table.concat(parts), new_base, 1
end
local function halved(entries, wide, base, before)
local format, width = '<I3I2', 5
if wide == 1 then format, width = '<I6I7', 13 end
local half, rest = floor(#entries / width / 2), {}
local start = unpack(format, entries, half * width + 1)
for n = 0, #entries / width - 1 do
local offset, cost = unpack(format, entries, n * width + 1)
if n < half then before = before + cost else rest[#rest + 1] = pack(format, offset - start, cost) end
end
return sub(entries, 1, half * width), half, table.concat(rest), base + start, before
end
local function trim_tail(state, rule)
local count
while true do
local text, from, entries, format, width, base = open(state, state.tail)
count = entries
local offset, cost
if count > 0 then offset, cost = unpack(format, text, from + (count - 1) * width) end
if count > 0 and cost > 0 then
state.latest = base + offset
break
elseif count > 0 then
state.text = sub(text, from, from + (count - 1) * width - 1)
state.from = 1
elseif state.tail == state.first then
state.text = nil
return
else
state.tail = state.tail - 1
local field = pack('<I4', state.tail)
local chunk = call('HGET', state.key, field)
call('HDEL', state.key, field)
state.wide, state.base, state.before = unpack('<BI6d', chunk)
state.text, state.from = sub(chunk, 16), 1
end
end
for w = 1, rule.windows do
local number = state[w * 4 - 1]
if number > state.tail or (number == state.tail and state[w * 4] > count) then
state[w * 4 - 1], state[w * 4] = state.tail, count
end
end
end
function rare.adjust(state, rule, now, at, cost, save, write)
for w = 1, rule.windows do advance(state, rule, w, now) end
if state.sum + cost > 9007199254740991 then rare.rebase(state, rule) end
local number = rare.seek(state, state.first, at)
local text, from, count, format, width, base, before = open(state, number)
local entry, found, old = 0, false, 0
while entry < count do
local offset, recorded = unpack(format, text, from + entry * width)
if base + offset >= at then
if base + offset == at then found, old = true, recorded end
break
end
entry = entry + 1
end
local difference = max(cost, -old)
if difference == 0 then return end
local entries, new_base, wide = changed(text, from, count, format, width, base, entry, found, at, old + difference)
state.sum = state.sum + difference
for w = 1, rule.windows do
local c = w * 4 - 3
if now - at >= rule[w * 2] then
state[c] = state[c] + difference
if not found and state[c + 2] == number then state[c + 3] = state[c + 3] + 1 end
elseif at < state[c + 1] then
state[c + 2], state[c + 3] = number, entry
end
state[c + 1] = -math.huge
end
local added = #entries > LONGEST_CHUNK and 1 or 0
for later = state.tail - 1, number + 1, -1 do
local chunk = call('HGET', state.key, pack('<I4', later))
local its_wide, its_base, its_before = unpack('<BI6d', chunk)
call('HSET', state.key, pack('<I4', later + added),
pack('<BI6d', its_wide, its_base, its_before + difference) .. sub(chunk, 16))
end
if number < state.tail then state.before = state.before + difference end
if added == 1 then
local first, half, rest, rest_base, rest_before = halved(entries, wide, new_base, before)
call('HSET', state.key, pack('<I4', number), pack('<BI6d', wide, new_base, before) .. first)
for c = 1, rule.windows * 4, 4 do
if state[c + 2] == number and state[c + 3] >= half then
state[c + 2], state[c + 3] = number + 1, state[c + 3] - half
elseif state[c + 2] > number then
state[c + 2] = state[c + 2] + 1
end
end
number, state.tail, entries, new_base, before = number + 1, state.tail + 1, rest, rest_base, rest_before
end
state.read = 0
if number < state.tail then
call('HSET', state.key, pack('<I4', number), pack('<BI6d', wide, new_base, before) .. entries)
else
state.text, state.from, state.base, state.before, state.wide = entries, 1, new_base, before, wide
trim_tail(state, rule)
if not state.text then
state.latest = 0
return write(state, '')
end
end
for w = 1, rule.windows do advance(state, rule, w, now) end
rare.drop_left(state, rule)
save(state, rule, sub(state.text, state.from), '')
end
function rare.held(state, rule, w, now)
local limit, count, gone, oldest = rule[w * 2 - 1], 0, nil, nil
if state.text then
gone, oldest = advance(state, rule, w, now)
count = state.sum - gone
end
if count == 0 then return 0, limit end
return count, max(0, limit - count), oldest, state.latest
end
local function cost_before_time(state, time)
local text, from, count, format, width, base, before = open(state, rare.seek(state, state.first, time - 1))
for entry = 0, count - 1 do
local offset, cost = unpack(format, text, from + entry * width)
if base + offset >= time then break end
before = before + cost
end
return before
end
function rare.count(state, rule, w, now, from, to)
from, to = max(from, now - rule[w * 2] + 1, 0), min(to, now)
if not state.text or to < from then return 0, from, to end
return cost_before_time(state, to + 1) - cost_before_time(state, from), from, to
end
return rare
end
local function slidingLog()
local call, pack, unpack, sub = redis.call, struct.pack, struct.unpack, string.sub
local rare
local function load(state, key, rule, _, text)
if text == nil then text = call('HGET', key, 'h') end
state.key, state.text, state.read, state.changed = key, text, 0, false
if not text then
state.latest = 0
return
end
local written, cursors
state.sum, written, cursors, state.wide, state.base, state.tail, state.before, state.first
= unpack('<dI2BBI6I4dI4', text)
state.from = 35 + cursors * 28
local format, width = '<I3I2', 5
if state.wide == 1 then format, width = '<I6I7', 13 end
local offset, cost = unpack(format, text, #text - width + 1)
state.latest = state.base + offset
state.sum = state.sum + ((#text - state.from + 1) / width - written) * cost
for w = 1, rule.windows do
local window, c = nil, w * 4 - 3
if w <= cursors then
window, state[c], state[c + 1], state[c + 2], state[c + 3] = unpack('<ddI6I4I2', text, 7 + w * 28)
end
if window ~= rule[w * 2] then
state[c], state[c + 1], state[c + 2], state[c + 3], state.changed = 0, -math.huge, state.first, 0, true
end
end
end
local function open(state, number)
local text, from, base, before, wide
if number == state.tail then
text, from, base, before, wide = state.text, state.from, state.base, state.before, state.wide
else
if state.read ~= number then
state.read, state.read_text = number, call('HGET', state.key, pack('<I4', number))
end
text, from = state.read_text, 16
wide, base, before = unpack('<BI6d', text)
end
if wide == 1 then return text, from, (#text - from + 1) / 13, '<I6I7', 13, base, before end
return text, from, (#text - from + 1) / 5, '<I3I2', 5, base, before
end
local function advance(state, rule, w, now)
local c, left = w * 4 - 3, now - rule[w * 2]
if state.latest <= left then
local count = (#state.text - state.from + 1) / (state.wide == 1 and 13 or 5)
state[c], state[c + 1], state[c + 2], state[c + 3] = state.sum, 0, state.tail, count
return state.sum
end
local gone, oldest, number, entry = state[c], state[c + 1], state[c + 2], state[c + 3]
if oldest > left then return gone, oldest end
if oldest == 0 then number, entry = state.first, 0 end
local hops = 0
while true do
local text, from, count, format, width, base, before = open(state, number)
if entry == 0 then gone = before end
while entry < count do
local offset, cost = unpack(format, text, from + entry * width)
if base + offset > left and cost > 0 then
oldest = base + offset
state[c], state[c + 1], state[c + 2], state[c + 3] = gone, oldest, number, entry
return gone, oldest
end
gone, entry = gone + cost, entry + 1
end
number, entry, hops = number + 1, 0, hops + 1
if hops > 1 then
rare = rare or slidingLogRare(open, advance)
number = rare.seek(state, number, left)
end
end
end
local function check(state, rule, now, cost, reply, r)
local fits = true
for w = 1, rule.windows do
local limit, count, gone, oldest = rule[w * 2 - 1], 0, nil, nil
if state.text then
gone, oldest = advance(state, rule, w, now)
count = state.sum - gone
end
local remaining = limit > count and limit - count or 0
reply[r + 1], reply[r + 2] = remaining, 0
if cost > remaining then
fits = false
local over = cost - (limit - count)
if cost > limit then
reply[r + 2] = -1
else
if over > 1 then
rare = rare or slidingLogRare(open, advance)
oldest = rare.time_of_cost(state, w, gone + over)
end
reply[r + 2] = oldest + rule[w * 2] - now
end
end
r = r + 3
end
return fits
end
local function write(state, head, number, chunk)
local beside = state.beside or ''
state.unsaved = false
if head == '' and beside ~= '' then head = NO_LOG end
if head == '' then
call('HDEL', state.key, 'h')
elseif chunk then
call('HSET', state.key, 'h', head .. beside, pack('<I4', number), chunk)
else
call('HSET', state.key, 'h', head .. beside)
end
end
local function save(state, rule, entries, last, number, chunk)
local head = pack('<dI2BBI6I4dI4', state.sum, (#entries + #last) / (state.wide == 1 and 13 or 5), rule.windows,
state.wide, state.base, state.tail, state.before, state.first)
for w = 1, rule.windows do
local c = w * 4 - 3
head = head .. pack('<ddI6I4I2', rule[w * 2], state[c], state[c + 1], state[c + 2], state[c + 3])
end
write(state, head .. entries .. last, number, chunk)
if state.changed then call('PEXPIRE', state.key, rule.longest * 2 + TTL_SLACK) end
end
local function charge(state, rule, now, at, cost)
if now - at >= rule.longest then return end
local before, text = state.latest, state.text
if text and cost > 0 and before <= now - rule.longest and state.tail - state.first > 100 then
call('UNLINK', state.key)
text = false
end
if not text then
if cost <= 0 then return end
state.first, state.tail, state.sum = 1, 0, 0
for w = 1, rule.windows do
local c = w * 4 - 3
state[c], state[c + 1], state[c + 2], state[c + 3] = 0, at, 1, 0
end
elseif cost <= 0 or at < before then
local amended = amend(text, at, cost)
if amended then return write(state, amended) end
rare = rare or slidingLogRare(open, advance)
return rare.adjust(state, rule, now, at, cost, save, write)
end
local kept, chunk, count, format, width, base = '', nil, 0, nil, nil, nil
if text then
for w = 1, rule.windows do advance(state, rule, w, now) end
if state.sum + cost > 9007199254740991 then
rare = rare or slidingLogRare(open, advance)
rare.rebase(state, rule)
end
if state[rule.slowest * 4 - 1] > state.first then
rare = rare or slidingLogRare(open, advance)
rare.drop_left(state, rule)
end
local from
text, from, count, format, width, base = open(state, state.tail)
if at == before then
local _, last = unpack(format, text, from + (count - 1) * width)
count, cost, state.sum = count - 1, cost + last, state.sum - last
end
kept = sub(text, from, from + count * width - 1)
for w = 1, rule.windows do
if before <= now - rule[w * 2] and at > now - rule[w * 2] then state[w * 4 - 2] = at end
end
end
state.latest, state.sum = at, state.sum + cost
if count > 0 and #kept < CHUNK_BYTES and (width == 13 or (cost < 65536 and at - base < 16777216)) then
save(state, rule, kept, pack(format, at - base, cost))
else
if count > 0 then chunk = pack('<BI6d', state.wide, base, state.before) .. kept end
if count > 0 or not text then state.tail = state.tail + 1 end
state.base, state.before, state.wide = at, state.sum - cost, cost < 65536 and 0 or 1
save(state, rule, '', pack(cost < 65536 and '<I3I2' or '<I6I7', 0, cost), state.tail - 1, chunk)
end
state.text = true
local longest = rule.longest
if not text or before - before % longest ~= at - at % longest then
call('PEXPIRE', state.key, longest * 2 + TTL_SLACK)
end
end
return {
load = load, check = check, charge = charge, write = write,
prepare = function(rule)
rule.windows, rule.longest = #rule / 2, 0
for w = 1, rule.windows do
if rule[w * 2] > rule.longest then rule.longest, rule.slowest = rule[w * 2], w end
end
end,
expires = function(state, rule, w) return state.text and state.latest + rule[w * 2] or 0 end,
held = function(state, rule, w, now) return slidingLogRare(open, advance).held(state, rule, w, now) end,
count = function(state, rule, w, now, from, to)
return slidingLogRare(open, advance).count(state, rule, w, now, from, to)
end,
}
end
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
function algorithm.prepare(rule) rule.windows = 1 end
function algorithm.load(state, key, rule)
local text = call('HGET', key, 'm')
state.key, state.first, state.ends, state.total, state.cells, state.all = key, 0, 0, 0, {}, false
if text then state.first, state.ends, state.total = unpack('<ddd', text) end
state.latest = max(0, state.ends - 1) * rule[3]
end
local function count_of(state, rule, k)
local count = state.cells[k]
if not count and state.all then return 0 end
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
local function read_all(state)
local fields = call('HGETALL', state.key)
for n = 1, #fields, 2 do
if fields[n] ~= 'm' then
local number, count = unpack('<dd', fields[n + 1])
state.cells[number] = count
end
end
state.all = true
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
read_all(state)
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
call('PEXPIRE', state.key, leaves(rule, state.ends - 1) - now + state.ahead + TTL_SLACK)
end
function algorithm.expires(state, rule)
for k = state.ends - 1, state.first, -1 do
if count_of(state, rule, k) > 0 then return leaves(rule, k) end
end
return 0
end
function algorithm.held(state, rule, _, now)
local oldest, newest
read_all(state)
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
function algorithm.count() return 0, 0, 0 end
return algorithm
end
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
local function read_first(state)
if state.first or state.ends == 0 then return end
state.first = tonumber(call('ZRANGE', state.key, 0, 0, 'WITHSCORES')[2])
if state.first < 0 then state.extra = -state.first end
end
local function extra_of(state, lease)
return state.extra > 0 and -(tonumber(call('ZSCORE', state.key, '#' .. lease) or 0)) or 0
end
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
local function keep(state, rule, ends)
if ends <= state.ends then return end
local lease = rule[2]
if state.ends == 0 or state.ends - state.ends % lease ~= ends - ends % lease then
call('PEXPIRE', state.key, lease * 2 + state.ahead + TTL_SLACK)
end
state.ends = ends
end
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
function algorithm.count() return 0, 0, 0 end
return algorithm
end
local function leased(letter, makers)
local call, pack, unpack, sub, max, min = redis.call, struct.pack, struct.unpack, string.sub, math.max, math.min
local in_log = letter == 'R'
local inner = makers[in_log and 'L' or sub(letter, 2)]()
local algorithm = {}
function algorithm.prepare(rule)
rule.lease, rule.window = table.remove(rule), table.remove(rule)
inner.prepare(rule)
end
function algorithm.load(state, key, rule, held_key)
local text
if in_log then
local both, head = call('HGET', key, 'h'), false
text = ''
if both then
local entries, _, wide = unpack('<I2BB', both, 9)
local from = 63 + entries * (wide == 1 and 13 or 5)
if entries > 0 then head = sub(both, 1, from - 1) end
text = sub(both, from)
end
inner.load(state, key, rule, nil, head)
state.beside, state.unsaved = text, false
else
inner.load(state, key, rule)
state.held_key, text = held_key, call('GET', held_key) or ''
end
state.held_text, state.held, state.held_until = text, 0, 0
if text ~= '' then
local _
state.held_until, _, _, state.held = unpack('<dddd', text, #text - 31)
end
end
local function read(text, place)
place = place + 2 + unpack('<I2', text, place)
local ends, at, cost = unpack('<ddd', text, place)
return ends, at, cost, place + 32
end
local function live(state, now)
local text, held, place = state.held_text, state.held, 1
if state.held_until <= now then return 0, #text + 1 end
while true do
local ends, _, cost, following = read(text, place)
if ends > now then return held, place end
held, place = held - cost, following
end
end
local function wait_beside(state, rule, now, cost)
local answer = {}
inner.check(state, rule, now, cost, answer, 0)
return answer[2] < 0 and math.huge or answer[2]
end
local function wait_for(state, rule, now, cost, place)
local ends, costs = { [0] = now }, {}
while place < #state.held_text do
local its_end, _, its_cost, following = read(state.held_text, place)
ends[#ends + 1], costs[#costs + 1], place = its_end, its_cost, following
end
local beside = { [#ends] = cost }
for n = #ends, 1, -1 do beside[n - 1] = beside[n] + costs[n] end
local low, high = 0, #ends
while low < high do
local middle = math.floor((low + high) / 2)
if now + wait_beside(state, rule, now, beside[middle]) < ends[middle + 1] then
high = middle
else
low = middle + 1
end
end
local wait = max(wait_beside(state, rule, now, beside[low]), ends[low] - now)
return wait == math.huge and -1 or wait
end
function algorithm.check(state, rule, now, cost, reply, r)
local held, place = live(state, now)
local fits = inner.check(state, rule, now, cost + held, reply, r)
reply[r + 1] = max(0, reply[r + 1] - held)
if fits or cost == 0 then
reply[r + 2] = 0
return true
end
if held > 0 then reply[r + 2] = wait_for(state, rule, now, cost, place) end
end
local function with_holder(text, ends, at, cost, id)
local holder, place = pack('<I2c0dddd', #id, id, ends, at, cost, 0), #text + 1
if text ~= '' and unpack('<d', text, #text - 31) > ends then
place = 1
while true do
local other, _, _, following = read(text, place)
if other > ends then break end
place = following
end
end
return sub(text, 1, place - 1) .. holder .. sub(text, place)
end
local function save(state, now, held, text)
state.held_until = 0
if text ~= '' then
text = sub(text, 1, -9) .. pack('<d', held)
state.held_until = unpack('<d', text, #text - 31)
end
if in_log then
state.beside, state.unsaved = text, true
elseif text == '' then
call('DEL', state.held_key)
else
call('SET', state.held_key, text, 'PX', state.held_until - now + state.ahead + TTL_SLACK)
end
end
local function flush(state)
if state.unsaved then inner.write(state, state.text or '') end
end
local function is_kept(state, rule, at)
local start = at - at % rule.window
if state.text and state.latest >= start then return true end
return state.held_text ~= '' and unpack('<d', state.held_text, #state.held_text - 23) >= start
end
function algorithm.charge(state, rule, now, at, cost, id)
if id == '' then return inner.charge(state, rule, now, at, cost, id) end
local held, place = live(state, now)
save(state, now, held + cost, with_holder(sub(state.held_text, place), at + rule.lease, at, cost, id))
flush(state)
if in_log and not is_kept(state, rule, at) then call('PEXPIRE', state.key, rule.window * 2 + TTL_SLACK) end
end
function algorithm.settle(state, rule, now, at, actual, id)
local held, first = live(state, now)
local text, time = state.held_text, now
local found = string.find(text, pack('<I2c0', #id, id), 1, true)
local is_held = found and found >= first
if is_held then
local _, began, cost, following = read(text, found)
text = sub(text, first, found - 1) .. sub(text, following)
held, time = held - cost, max(now, at)
if actual < 0 then
text = with_holder(text, min(now + rule.lease, at + rule.window), began, cost, id)
held = held + cost
end
save(state, now, held, text)
elseif found then
save(state, now, held, sub(text, first))
end
if actual > 0 and at <= time then
state.ahead = state.ahead + time - now
inner.charge(state, rule, time, at, actual, '')
end
flush(state)
return actual >= 0 or is_held or now >= at + rule.window
end
function algorithm.expires(state, rule, w) return max(inner.expires(state, rule, w), state.held_until) end
function algorithm.held(state, rule, w, now)
local count, remaining, oldest, newest = inner.held(state, rule, w, now)
local held, place = live(state, now)
while place <= #state.held_text do
local _, at, _, following = read(state.held_text, place)
oldest, newest, place = min(oldest or at, at), max(newest or at, at), following
end
return count + held, max(0, remaining - held), oldest, newest
end
function algorithm.count(state, rule, w, now, from, to)
local count, first, last = inner.count(state, rule, w, now, from, to)
local _, place = live(state, now)
while place <= #state.held_text do
local _, at, cost, following = read(state.held_text, place)
if first <= at and at <= last then count = count + cost end
place = following
end
return count, first, last
end
return algorithm
end
local makers = { L = slidingLog, Z = slidingLogZset, C = slidingCells, F = fixedWindow, B = tokenBucket,
H = concurrent }
local made, r, first_key = {}, 0, 0
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
end
local function express(rule, now, operation, reply, r, n, last, a, step)
local call, pack, unpack, sub = redis.call, struct.pack, struct.unpack, string.sub
local keys, windows, longest, slowest = KEYS, #rule / 2, rule[2], 1
for w = 2, windows do
if rule[w * 2] > longest then longest, slowest = rule[w * 2], w end
end
local entries_from, period_start = 35 + windows * 28, now - now % longest
local lone, limit = operation == 'a' and windows == 1, rule[1]
local key, text, told, cost, new_head, waits
while n < last do
if told ~= a then told, cost, new_head = a, tonumber(ARGV[a]), nil end
if keys[n + 1] ~= key then
key = keys[n + 1]
text = call('HGET', key, 'h')
end
local format, width, latest, last_cost = '<I3I2', 5, -2 ^ 53, 0
local sum, written, cursors, wide, base, tail, before, first = 0, 0, windows, 0, 0, 1, 0, 1
local its_window, gone, oldest = 0, 0, 0
if text then
sum, written, cursors, wide, base, tail, before, first, its_window, gone, oldest
= unpack('<dI2BBI6I4dI4ddI6', text)
if wide == 1 then format, width = '<I6I7', 13 end
latest, last_cost = unpack(format, text, #text - width + 1)
latest, sum = latest + base, sum + ((#text - entries_from + 1) / width - written) * last_cost
end
if latest > now or cursors ~= windows or sum + cost > 9007199254740991 then return n, r, a end
if lone and cost == last_cost and cost > 0 and latest < now and its_window == longest and oldest > now - longest
and sum - gone + cost <= limit and #text - entries_from < CHUNK_BYTES - 1
and (wide == 1 or now - base < 16777216) then
text = text .. pack(format, now - base, cost)
call('HSET', key, 'h', text)
if latest < period_start then call('PEXPIRE', key, longest * 2 + TTL_SLACK) end
r = r + 1
reply[r] = limit - sum + gone - cost
else
local fits, empty, moved, slow_chunk = true, latest <= now - longest, nil, 0
for w = 1, windows do
local limit, window, place = rule[w * 2 - 1], rule[w * 2], 7 + w * 28
local left, remaining, wait, cursor = now - window, limit, 0, nil
if latest <= left then
if cost > limit then wait = -1 end
if not empty then
cursor = pack('<ddI6I4I2', window, sum, now, tail, (#text - entries_from + 1) / width)
end
else
if w > 1 then its_window, gone, oldest = unpack('<ddI6', text, place) end
if its_window ~= window or oldest == 0 then return n, r, a end
remaining = limit - sum + gone
if oldest <= left or (cost - remaining > 1 and cost > 0 and cost <= limit) then
local number, entry = unpack('<I4I2', text, place + 22)
local chunk, from, its_format, its_width, its_base, at, offset, its_cost
for hop = 0, 1 do
if number == tail then
chunk, from, its_format, its_width, its_base = text, entries_from, format, width, base
else
chunk, from, its_format, its_width = call('HGET', key, pack('<I4', number)), 16, '<I3I2', 5
local its_wide
its_wide, its_base = unpack('<BI6', chunk)
if its_wide == 1 then its_format, its_width = '<I6I7', 13 end
end
at = from + entry * its_width
while at < #chunk do
offset, its_cost = unpack(its_format, chunk, at)
if its_base + offset > left and its_cost > 0 then break end
gone, at = gone + its_cost, at + its_width
end
if at < #chunk then break end
if hop == 1 then return n, r, a end
number, entry = number + 1, 0
end
if oldest <= left then
oldest = its_base + offset
cursor = pack('<ddI6I4I2', window, gone, oldest, number, (at - from) / its_width)
if w == slowest then slow_chunk = number end
end
remaining = limit - sum + gone
local over = cost - remaining
if over > 1 and cost > 0 and cost <= limit then
while its_cost < over do
over, at = over - its_cost, at + its_width
if at >= #chunk then return n, r, a end
offset, its_cost = unpack(its_format, chunk, at)
end
oldest = its_base + offset
end
end
if cost > remaining and cost > 0 then wait = cost > limit and -1 or oldest - left end
end
reply[r + w] = remaining
if wait ~= 0 then
fits, waits = false, waits or {}
waits[w] = wait
end
if cursor or moved then
moved = (moved or sub(text, 35, place - 1)) .. (cursor or sub(text, place, place + 27))
end
end
if not fits or cost == 0 or operation == 'p' then
for w = windows, 1, -1 do
local remaining, left = reply[r + w], now - rule[w * 2]
local at = r + w * 3
reply[at - 1], reply[at] = remaining > 0 and remaining or 0, waits and waits[w] or 0
reply[at + 1] = latest > left and latest - left or 0
end
reply[r + 1] = -1
r, waits = r + 1 + windows * 3, nil
else
local kept, entry_cost, offset = text and #text, cost, now - base
if latest == now then kept, entry_cost = kept - width, cost + last_cost end
if empty then
if first < tail then return n, r, a end
if not new_head then
new_head = pack('<dI2BBI6I4dI4', cost, 1, windows, cost > 65535 and 1 or 0, now, 1, 0, 1)
for w = 1, windows do new_head = new_head .. pack('<ddI6I4I2', rule[w * 2], 0, now, 1, 0) end
new_head = new_head .. pack(cost > 65535 and '<I6I7' or '<I3I2', 0, cost)
end
text = new_head
call('HSET', key, 'h', text)
elseif kept - entries_from + 1 >= CHUNK_BYTES or wide == 0 and (entry_cost > 65535 or offset > 16777215) then
if slow_chunk > first then return n, r, a end
local closed, entries = kept >= entries_from, sub(text, entries_from, kept)
text = pack('<dI2BBI6I4dI4', sum + cost, 1, windows, entry_cost > 65535 and 1 or 0, now,
closed and tail + 1 or tail, sum + cost - entry_cost, first)
.. (moved or sub(text, 35, entries_from - 1))
.. pack(entry_cost > 65535 and '<I6I7' or '<I3I2', 0, entry_cost)
if closed then
call('HSET', key, 'h', text, pack('<I4', tail), pack('<BI6dc0', wide, base, before, entries))
else
call('HSET', key, 'h', text)
end
elseif moved or latest == now or cost ~= last_cost then
if slow_chunk > first + 1 then return n, r, a end
for w = 1, slow_chunk > first and windows or 0 do
if unpack('<I4', moved, w * 28 - 5) < slow_chunk then return n, r, a end
end
local rest = sub(text, 11, kept)
if moved then
rest = pack('<c0I4c0c0', sub(text, 11, 30), slow_chunk > first and slow_chunk or first, moved,
sub(text, entries_from, kept))
end
text = pack(wide == 1 and '<dI2c0I6I7' or '<dI2c0I3I2', sum + cost, (kept - entries_from + 1) / width + 1,
rest, offset, entry_cost)
call('HSET', key, 'h', text)
if slow_chunk > first then call('HDEL', key, pack('<I4', first)) end
else
text = text .. pack(format, offset, cost)
call('HSET', key, 'h', text)
end
if latest < period_start then call('PEXPIRE', key, longest * 2 + TTL_SLACK) end
for w = 1, windows do reply[r + w] = reply[r + w] - cost end
r = r + windows
end
end
n, a = n + 1, a + step
end
return n, r, a
end
local function hold(rule, now, operation, reply, r, n, last, a, step)
local call, pack, unpack, sub, find = redis.call, struct.pack, struct.unpack, string.sub, string.find
local keys, told, limit, window, lease = KEYS, ARGV, rule[1], rule[2], rule.lease or rule[4]
local left, period_start, settles = now - window, now - now % window, operation == 's'
local id_after, ends, x_text, x, alone = settles and 2 or 1, now + lease, nil, nil, nil
while n < last do
if told[a] ~= x_text then
x_text, x = told[a], tonumber(told[a])
alone = pack('<dddd', ends, now, x, x)
end
local key, id = keys[n + 1], told[a + id_after]
if x <= 0 or id == '' then return n, r, a end
local text, kept = call('HGET', key, 'h') or NO_LOG, 62
local format, width, latest, last_cost = '<I3I2', 5, -2 ^ 53, 0
local sum, entries, cursors, wide, base, tail, before, first, its_window, gone, oldest
= unpack('<dI2BBI6I4dI4ddI6', text)
if entries > 0 then
if wide == 1 then format, width = '<I6I7', 13 end
kept = 62 + entries * width
latest, last_cost = unpack(format, text, kept - width + 1)
latest = latest + base
if latest > now or cursors ~= 1 or its_window ~= window or oldest <= left then return n, r, a end
else
tail, first = 1, 1
end
if not settles then
local held, last_end, held_at, _ = 0, 0, -1, nil
if kept < #text then
last_end, held_at, _, held = unpack('<dddd', text, #text - 31)
if unpack('<d', text, kept + 3 + unpack('<I2', text, kept + 1)) <= now then return n, r, a end
end
local remaining = limit - sum + gone - held - x
if remaining < 0 or ends < last_end then return n, r, a end
local holder = held == 0 and alone or pack('<dddd', ends, now, x, held + x)
call('HSET', key, 'h', text .. pack('<I2', #id) .. id .. holder)
if latest < period_start and held_at < period_start then call('PEXPIRE', key, window * 2 + TTL_SLACK) end
local reset = latest - left
reply[r + 1], reply[r + 2], reply[r + 3], reply[r + 4] = -1, remaining, 0, reset > lease and reset or lease
r = r + 4
else
local found = find(text, id, kept + 3, true)
if not found or unpack('<I2', text, found - 2) ~= #id then return n, r, a end
local its_end, at, cost, following = unpack('<ddd', text, found + #id)
if its_end <= now or at < latest or at > now or at <= left then return n, r, a end
local others = ''
following = following + 8
if following <= #text then
others = sub(text, kept + 1, found - 3) .. sub(text, following, -9)
elseif found > kept + 3 then
others = sub(text, kept + 1, found - 11)
end
if others ~= '' then others = others .. pack('<d', unpack('<d', text, #text - 7) - cost) end
local entry_cost, offset = x, at - base
if latest == at then
kept, entries, entry_cost = kept - width, entries - 1, x + last_cost
end
local full = kept - 62 >= CHUNK_BYTES or wide == 0 and (entry_cost > 65535 or offset > 16777215)
if sum + x > 9007199254740991 or full and latest == at and entries == 0 then return n, r, a end
if full or entries == 0 and latest < at then
local cursor
if entries > 0 then
call('HSET', key, pack('<I4', tail), pack('<BI6dc0', wide, base, before, sub(text, 63, kept)))
tail, cursor = tail + 1, sub(text, 35, 62)
end
wide = entry_cost > 65535 and 1 or 0
text = pack('<dI2BBI6I4dI4', sum + x, 1, 1, wide, at, tail, sum + x - entry_cost, first)
.. (cursor or pack('<ddI6I4I2', window, 0, at, 1, 0))
.. pack(wide == 1 and '<I6I7' or '<I3I2', 0, entry_cost) .. others
else
text = pack(wide == 1 and '<dI2c0I6I7c0' or '<dI2c0I3I2c0', sum + x, entries + 1, sub(text, 11, kept), offset,
entry_cost, others)
end
call('HSET', key, 'h', text)
reply[r + 1] = 1
r = r + 1
end
n, a = n + 1, a + step
end
return n, r, a
end
local function settle(_, _, _, reply, r, n, last, a, step)
local call, number, keys, told = redis.call, tonumber, KEYS, ARGV
while n < last do
local text = call('HGET', keys[n + 1], 'h')
text = text and amend(text, number(told[a + 1]), number(told[a]))
if not text then return n, r, a end
call('HSET', keys[n + 1], 'h', text)
reply[r + 1] = 1
n, r, a = n + 1, r + 1, a + step
end
return n, r, a
end
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
return reply`;
