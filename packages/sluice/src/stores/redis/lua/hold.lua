-- The commonest calls on a log with a lease, in locals: to hold a cost, and to let it go for what it really was. What
-- leased.lua does, where the state is as usual; takes and answers what express does. Out of the ordinary are besides:
-- a refusal, a lease that has ended, a settlement of what is not the newest.
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
      if latest == at then  -- one entry per millisecond
        kept, entries, entry_cost = kept - width, entries - 1, x + last_cost
      end
      local full = kept - 62 >= CHUNK_BYTES or wide == 0 and (entry_cost > 65535 or offset > 16777215)
      if sum + x > 9007199254740991 or full and latest == at and entries == 0 then return n, r, a end
      if full or entries == 0 and latest < at then  -- the first entry of a tail: the one before becomes a chunk
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
