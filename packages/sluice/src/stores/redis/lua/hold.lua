-- The commonest calls on a log with a lease, in locals: to hold a cost, and to let it go for what it really was. What
-- leased.lua does, where the state is as usual; takes and answers what express does. Out of the ordinary are besides:
-- a refusal, a lease that has ended, a settlement of what is not the newest.
local function hold(rule, now, operation, reply, r, n, last, a, step)
  local call, pack, unpack, sub, number = redis.call, struct.pack, struct.unpack, string.sub, tonumber
  local keys, told, limit, window, lease = KEYS, ARGV, rule[1], rule[2], rule.lease or rule[4]
  local settles, left, period_start = operation == 's', now - window, now - now % window

  while n < last do
    local key, x, at, id = keys[n + 1], number(told[a]), number(told[a + 1]), told[a + 2]
    if x <= 0 or id == '' or not settles and at ~= 0 then return n, r, a end
    local text, head = call('HGET', key, 'h'), 5
    local held, last_end, first_end, first_at = 0, 0, now + 1, -1
    local format, width, latest, last_cost = '<I3I2', 5, -2 ^ 53, 0
    local sum, cursors, wide, base, tail, before, first, written = 0, 1, 0, 0, 1, 0, 1, 0
    local its_window, gone, oldest = window, 0, now
    if text then
      head = 5 + unpack('<I4', text)
      if head > 5 then held, last_end, first_end, first_at = unpack('<dddd', text, 5) end
      if head < #text then
        sum, cursors, wide, base, tail, before, first, written, its_window, gone, oldest
          = unpack('<dBBI6I4dI4I2ddI6', text, head)
        if wide == 1 then format, width = '<I6I7', 13 end
        latest, last_cost = unpack(format, text, #text - width + 1)
        latest, sum = latest + base, sum + ((#text - head - 61) / width - written) * last_cost
      end
    end
    if latest > now or cursors ~= 1 or its_window ~= window or oldest <= left or first_end <= now then
      return n, r, a
    end

    if not settles then
      local remaining, ends = limit - sum + gone - held - x, now + lease
      if remaining < 0 or ends < last_end then return n, r, a end
      local holder = pack('<dddI2c0', ends, now, x, #id, id)
      if text then
        text = pack('<I4dd', (head > 5 and head - 5 or 16) + #holder, held + x, ends)
          .. sub(text, 21, head - 1) .. holder .. sub(text, head)
      else
        text = pack('<I4dd', 16 + #holder, x, ends) .. holder
      end
      call('HSET', key, 'h', text)
      if latest < period_start and first_at < period_start then call('PEXPIRE', key, window * 2 + TTL_SLACK) end
      local reset = latest - left
      reply[r + 1], reply[r + 2], reply[r + 3], reply[r + 4] = -1, remaining, 0, reset > lease and reset or lease
      r = r + 4
    else
      local found = text and string.find(text, pack('<I2c0', #id, id), 45, true) or head
      if found >= head or at < latest or at > now or at <= left then return n, r, a end
      local cost, following = unpack('<d', text, found - 8), found + 2 + #id
      local others = sub(text, 21, found - 25) .. sub(text, following, head - 1)
      if others ~= '' and following == head then  -- it would have ended last
        local place, length, _ = 1, nil, nil
        while place < #others do
          last_end, _, _, length = unpack('<dddI2', others, place)
          place = place + 26 + length
        end
      end
      others = others == '' and pack('<I4', 0) or pack('<I4ddc0', 16 + #others, held - cost, last_end, others)
      local kept, entry_cost, offset = #text, x, at - base
      if latest == at then kept, entry_cost = kept - width, x + last_cost end  -- one entry per millisecond
      if head > #text then
        wide = x > 65535 and 1 or 0
        text = others .. pack('<dBBI6I4dI4I2ddI6I4I2', x, 1, wide, at, 1, 0, 1, 1, window, 0, at, 1, 0)
          .. pack(wide == 1 and '<I6I7' or '<I3I2', 0, x)
      elseif kept - head - 61 >= CHUNK_BYTES or wide == 0 and (entry_cost > 65535 or offset > 16777215)
        or sum + x > 9007199254740991 then
        return n, r, a
      elseif latest < at and x == last_cost then
        text = others .. sub(text, head) .. pack(format, offset, x)
      else
        text = others .. pack('<dc0I2', sum + x, sub(text, head + 8, head + 31), (kept - head - 61) / width + 1)
          .. sub(text, head + 34, kept) .. pack(format, offset, entry_cost)
      end
      call('HSET', key, 'h', text)
      if latest < at - at % window then call('PEXPIRE', key, window * 2 + TTL_SLACK) end
      reply[r + 1] = 1
      r = r + 1
    end
    n, a = n + 1, a + step
  end
  return n, r, a
end

-- The same for settlements on a log without a lease.
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
