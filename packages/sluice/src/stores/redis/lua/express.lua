-- The commonest calls, decisions on one log alone, in locals: what slidingLog.lua does, where the state is as usual.
-- Decides for the keys after the nth up to the last, told what they cost from the ath argument on, each by so many
-- steps after the one before, and appends to the reply. Stops, having done nothing for the next key, where anything is
-- out of the ordinary: rules that have changed, a clock that stepped back, a pause that left chunks behind, a time to
-- search for in other chunks. Answers how many keys are done, the reply's length, and the next argument.
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
      -- The plainest case, an entry like the last one and nothing to move: the same as below, in fewer steps
      text = text .. pack(format, now - base, cost)
      call('HSET', key, 'h', text)
      if latest < period_start then call('PEXPIRE', key, longest * 2 + TTL_SLACK) end
      r = r + 1
      reply[r] = limit - sum + gone - cost
    else
      -- What remains goes into the reply; the cursors, once one of them has moved, into a text of their own
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
            if over > 1 and cost > 0 and cost <= limit then  -- and on, to where the cost fits
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
        if latest == now then kept, entry_cost = kept - width, cost + last_cost end  -- one entry per millisecond
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
          -- The tail becomes a chunk, unless it has no other entry
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
          for w = 1, slow_chunk > first and windows or 0 do  -- the chunk goes, unless another window's cursor is in it
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
