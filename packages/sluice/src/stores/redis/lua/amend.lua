-- The usual settlement on a log: an entry of the tail changes and stays. Answers the head's new text; or nothing where
-- the entry is not there, is counted by a window as what has left it, or would have no cost or one past its width, or
-- the cost of all would be past what a double tells.
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
