-- The commonest calls on a log with a lease, in locals: to hold a cost, and to let it go for what it really was. What
-- leased.lua does, where the state is as usual. Answers nothing, having done nothing, where anything is out of the
-- ordinary: see express.lua; and a refusal, a lease that has ended, a settlement of what is not the newest.
local function hold(rule, now, key, settles, x, at, id, reply, r)
  local call, pack, unpack, sub = redis.call, struct.pack, struct.unpack, string.sub
  local limit, window, lease = rule[1], rule[2], rule.lease or rule[4]
  local fields = call('HMGET', key, 'h', 'k')
  local text, held_text = fields[1], fields[2] or ''
  local format, width, latest, last_cost = '<I3I2', 5, -2 ^ 53, 0
  local sum, cursors, wide, base, tail, before, first, its_window, gone, oldest = 0, 1, 0, 0, 1, 0, 1, window, 0, now
  if text then
    sum, cursors, wide, base, tail, before, first, its_window, gone, oldest = unpack('<dBBI6I4dI4ddI6', text)
    if wide == 1 then format, width = '<I6I7', 13 end
    latest, last_cost = unpack(format, text, #text - width + 1)
    latest = latest + base
  end
  local held, last, first_end, first_at = 0, 0, now + 1, -1
  if held_text ~= '' then held, last, first_end, first_at = unpack('<dddd', held_text) end
  local left = now - window
  if latest > now or cursors ~= 1 or its_window ~= window or oldest <= left or first_end <= now then return end

  if not settles then
    local remaining, ends = limit - sum + gone - held - x, now + lease
    if remaining < 0 or ends < last then return end
    call('HSET', key, 'k', pack('<ddc0dddI2c0', held + x, ends, sub(held_text, 17), ends, now, x, #id, id))
    local start = now - now % window
    if latest < start and first_at < start then call('PEXPIRE', key, window * 2 + TTL_SLACK) end
    local reset = latest - left
    reply[r + 1], reply[r + 2], reply[r + 3], reply[r + 4] = -1, remaining, 0, reset > lease and reset or lease
    return r + 4
  end

  local found = string.find(held_text, pack('<I2c0', #id, id), 41, true)
  if not found or at < latest or at > now or at <= left then return end
  local _, _, cost = unpack('<ddd', held_text, found - 24)
  local following = found + 2 + #id
  local others = sub(held_text, 17, found - 25) .. sub(held_text, following)
  if others ~= '' then
    if following > #held_text then  -- it would have ended last
      local place, length = 1, nil
      while place < #others do
        last, _, _, length = unpack('<dddI2', others, place)
        place = place + 26 + length
      end
    end
    others = pack('<ddc0', held - cost, last, others)
  end
  local kept, entry_cost, offset = text and #text, x, at - base
  if latest == at then kept, entry_cost = kept - width, x + last_cost end  -- one entry per millisecond
  if not text then
    wide = x > 65535 and 1 or 0
    text = pack(wide == 1 and '<dBBI6I4dI4ddI6I4I2I6I7' or '<dBBI6I4dI4ddI6I4I2I3I2', x, 1, wide, at, 1, 0, 1, window,
      0, at, 1, 0, 0, x)
  elseif kept - 60 >= CHUNK_BYTES or wide == 0 and (entry_cost > 65535 or offset > 16777215)
    or sum + x > 9007199254740991 then
    return
  else
    text = pack(wide == 1 and '<dc0I6I7' or '<dc0I3I2', sum + x, sub(text, 9, kept), offset, entry_cost)
  end
  call('HSET', key, 'h', text, 'k', others)
  if latest < at - at % window then call('PEXPIRE', key, window * 2 + TTL_SLACK) end
  reply[r + 1] = 1
  return r + 1
end
