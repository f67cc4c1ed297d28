-- The commonest decision, one exact window over one key, in locals alone: what slidingLog.lua does
-- where the state is as usual. Appends to the reply and answers true; or answers false, having done
-- nothing, where anything is out of the ordinary: a new key, a wide or full chunk, a chunk to drop, a
-- clock that stepped back, a wait to search for.
local function express(key, rule, now, cost, commit, reply, r)
  local call, unpack = redis.call, struct.unpack
  local text = call('HGET', key, 'h')
  if not text or string.byte(text, 42) ~= 1 then return false end
  local latest, sum, first, tail, base, before, wide, _, its_window, gone, number, entry =
    unpack('<ddI4I4ddBBddI4I2', text)
  local limit, window = rule[1], rule[2]
  local left = now - window
  if latest > now or latest <= left or its_window ~= window or wide == 1 then return false end

  local chunk, from, chunk_base, chunk_wide = text, 65, base, 0
  if number ~= tail then
    chunk, from = call('HGET', key, number), 18
    chunk_base, _, chunk_wide = unpack('<ddB', chunk)
  end
  if chunk_wide == 1 then return false end
  local place, last, offset, its_cost = from + entry * 5, left - chunk_base, nil, nil
  while true do
    if place > #chunk then return false end
    offset, its_cost = unpack('<I3I2', chunk, place)
    if offset > last then break end
    gone, entry, place = gone + its_cost, entry + 1, place + 5
  end

  local remaining = limit - sum + gone
  if remaining < 0 then remaining = 0 end
  if cost > remaining then
    if cost > limit or its_cost < sum - gone + cost - limit then return false end
    reply[r + 1], reply[r + 2] = remaining, chunk_base + offset - left
    reply[r + 3], reply[r + 4] = latest - left, 0
    return true
  elseif not commit or cost == 0 then
    reply[r + 1], reply[r + 2], reply[r + 3], reply[r + 4] = remaining, 0, latest - left, 0
    return true
  end

  local kept, entry_cost = #text, cost
  if latest == now then
    local _, before_cost = unpack('<I3I2', text, kept - 4)
    kept, entry_cost = kept - 5, cost + before_cost
  end
  if number > first or kept >= 264 or entry_cost > 65535 or now - base >= 16777216 then return false end
  if sum + cost > 9007199254740991 then return false end
  call('HSET', key, 'h', struct.pack('<ddI4I4ddBBddI4I2c0I3I2', now, sum + cost, first, tail, base, before, 0, 1,
    window, gone, number, entry, string.sub(text, 65, kept), now - base, entry_cost))
  if latest - latest % window ~= now - now % window then call('PEXPIRE', key, window * 2 + TTL_SLACK) end
  reply[r + 1], reply[r + 2], reply[r + 3], reply[r + 4] = remaining - cost, 0, window, 0
  return true
end
