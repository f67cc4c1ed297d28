-- The commonest calls, decisions on one log alone, mostly in locals: what slidingLog.lua does, where the state is
-- as usual. Decides for the keys after the nth up to the last, and appends to the reply. Stops, having done nothing
-- for the next key, where anything is out of the ordinary: rules that have changed, a clock that stepped back, a
-- pause that left chunks behind, a time to search for in other chunks.
-- Answers how many keys are done, and the length of the reply.
local function express(rule, now, cost, commit, reply, r, n, last)
  local call, pack, unpack, sub = redis.call, struct.pack, struct.unpack, string.sub
  local keys, windows, longest = KEYS, rule.windows, rule.longest
  local entries_from, charges, new_head = 33 + windows * 28, commit and cost > 0, nil
  local remaining_of, wait_of, cursor_of = rule.remaining, rule.wait, rule.cursor

  while n < last do
    local key = keys[n + 1]
    local text = call('HGET', key, 'h')
    local sum, cursors, wide, base, tail, format, width, latest, last_cost = 0, windows, 0, 0, 1, '<I3I2', 5, -2 ^ 53, 0
    if text then
      sum, cursors, wide, base, tail = unpack('<dBBI6I4', text)
      if wide == 1 then format, width = '<I6I7', 13 end
      latest, last_cost = unpack(format, text, #text - width + 1)
      latest = latest + base
    end
    if latest > now or cursors ~= windows or sum + cost > 9007199254740991 then return n, r end

    local fits, moved, left_chunk, empty = true, false, nil, latest <= now - longest
    for w = 1, windows do
      local limit, window = rule[w * 2 - 1], rule[w * 2]
      local left, remaining, wait, cursor = now - window, limit, 0, false
      if latest <= left then
        if cost > limit then fits, wait = false, -1 end
        if not empty then
          cursor, moved = pack('<ddI6I4I2', window, sum, now, tail, (#text - entries_from + 1) / width), true
        end
      else
        local place = 5 + w * 28
        local its_window, gone, oldest = unpack('<ddI6', text, place)
        if its_window ~= window then return n, r end
        remaining = limit - sum + gone
        if oldest <= left or (cost - remaining > 1 and cost > 0 and cost <= limit) then
          local number, entry = unpack('<I4I2', text, place + 22)
          local chunk, from, its_format, its_width, its_base, at, offset, its_cost
          for hop = 0, 1 do  -- from the cursor on, past what has left the window
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
            if hop == 1 then return n, r end
            if w == rule.slowest then left_chunk = number end
            number, entry = number + 1, 0
          end
          if oldest <= left then
            oldest, moved = its_base + offset, true
            cursor = pack('<ddI6I4I2', window, gone, oldest, number, (at - from) / its_width)
          end
          remaining = limit - sum + gone
          local over = cost - remaining
          if over > 1 and cost > 0 and cost <= limit then  -- and on, to where the cost fits
            while its_cost < over do
              over, at = over - its_cost, at + its_width
              if at >= #chunk then return n, r end
              offset, its_cost = unpack(its_format, chunk, at)
            end
            oldest = its_base + offset
          end
        end
        if cost > remaining and cost > 0 then fits, wait = false, cost > limit and -1 or oldest - left end
      end
      remaining_of[w], wait_of[w], cursor_of[w] = remaining, wait, cursor
    end

    if fits and charges then
      if empty then
        if text and unpack('<I4', text, 29) < tail then return n, r end
        if not new_head then
          local is_wide = cost > 65535
          new_head = pack('<dBBI6I4dI4', cost, windows, is_wide and 1 or 0, now, 1, 0, 1)
          for w = 1, windows do new_head = new_head .. pack('<ddI6I4I2', rule[w * 2], 0, now, 1, 0) end
          new_head = new_head .. pack(is_wide and '<I6I7' or '<I3I2', 0, cost)
        end
        call('HSET', key, 'h', new_head)
      else
        local kept, entry_cost, offset = #text, cost, now - base
        if latest == now then kept, entry_cost = kept - width, cost + last_cost end  -- one entry per millisecond
        local full = kept - entries_from >= CHUNK_BYTES or wide == 0 and (entry_cost > 65535 or offset > 16777215)
        if not full and not moved then
          call('HSET', key, 'h',
            pack(wide == 1 and '<dc0I6I7' or '<dc0I3I2', sum + cost, sub(text, 9, kept), offset, entry_cost))
        else
          local before, first = unpack('<dI4', text, 21)
          if left_chunk then
            if first ~= left_chunk then return n, r end
            first = first + 1
          end
          local cursors_text = cursor_of[1] or sub(text, 33, 60)
          for w = 2, windows do cursors_text = cursors_text .. (cursor_of[w] or sub(text, 5 + w * 28, 32 + w * 28)) end
          if not full then
            call('HSET', key, 'h', pack(wide == 1 and '<dc0I4c0c0I6I7' or '<dc0I4c0c0I3I2', sum + cost,
              sub(text, 9, 28), first, cursors_text, sub(text, entries_from, kept), offset, entry_cost))
          else
            local its_wide, number = entry_cost > 65535, tail
            if kept >= entries_from then tail = tail + 1 end
            local head = pack(its_wide and '<dBBI6I4dI4c0I6I7' or '<dBBI6I4dI4c0I3I2', sum + cost, windows,
              its_wide and 1 or 0, now, tail, sum + cost - entry_cost, first, cursors_text, 0, entry_cost)
            if number == tail then
              call('HSET', key, 'h', head)
            else
              call('HSET', key, 'h', head, pack('<I4', number),
                pack('<BI6dc0', wide, base, before, sub(text, entries_from, kept)))
            end
          end
          if left_chunk then call('HDEL', key, pack('<I4', left_chunk)) end
        end
      end
      if latest - latest % longest ~= now - now % longest then call('PEXPIRE', key, longest * 2 + TTL_SLACK) end
      for w = 1, windows do reply[r + w] = remaining_of[w] - cost end
      r = r + windows
    else
      reply[r + 1] = -1
      for w = 1, windows do
        local left = now - rule[w * 2]
        reply[r + 2], reply[r + 3] = remaining_of[w] > 0 and remaining_of[w] or 0, wait_of[w]
        reply[r + 4] = latest > left and latest - left or 0
        r = r + 3
      end
      r = r + 1
    end
    n = n + 1
  end
  return n, r
end
