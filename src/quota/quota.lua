-- SPDX-License-Identifier: Apache-2.0
-- One question of a host about one budget. vethguard-quota sends this text (src/quota/script.c); the server runs it as a whole.
--
-- KEYS: the budget; the key that says since when the server has its data.
-- ARGV: the host's name, the budget's amount, the milliseconds of a part, what is needed, what is wanted beyond that, how long
-- nothing is given after the server has begun anew (ms), for how many parts an amount counts after its own; then the number and
-- amount of each part in which this host has claimed something.
-- Returns: the part that runs, how much of it is over (ms), what is granted, what is left, until when nothing more is there (ms;
-- -1: it never is), since when the server has its data.

local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local host, amount, part_ms = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local need, extra, settle_ms, parts = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local part = math.floor(now / part_ms)

local function text(n)
  return string.format('%.0f', n)
end

local function key(p)
  return KEYS[1] .. ':' .. text(p)
end

local function keep(p)
  redis.call('PEXPIRE', key(p), text((parts + 2) * part_ms))
end

local since = tonumber(redis.call('GET', KEYS[2]) or '')
if not since then
  since = now
  redis.call('SET', KEYS[2], text(now))
end

-- What this host says it has claimed replaces what is known of it.
local claims = {}
for i = 8, #ARGV, 2 do
  local p = math.min(tonumber(ARGV[i]), part)
  claims[p] = (claims[p] or 0) + tonumber(ARGV[i + 1])
end
local sums, used = {}, 0
for p = part - parts, part do
  local known = redis.call('HMGET', key(p), host, 'sum')
  local had, sum = tonumber(known[1] or 0), tonumber(known[2] or 0)
  local has = claims[p] or 0
  if has ~= had then
    sum = sum + has - had
    redis.call('HSET', key(p), host, text(has), 'sum', text(sum))
    keep(p)
  end
  sums[p] = sum
  used = used + sum
end

local room = math.max(amount - used, 0)
local grant, wait, settled = 0, 0, now - since
if settled >= 0 and settled < settle_ms then
  wait = settle_ms - settled
else
  grant = math.min(need, room)
  grant = grant + math.min(extra, math.floor((room - grant) / 4))
  if grant > 0 then
    redis.call('HINCRBY', key(part), host, text(grant))
    redis.call('HINCRBY', key(part), 'sum', text(grant))
    keep(part)
    sums[part] = sums[part] + grant
    used = used + grant
  end
  room = room - grant
  if need > amount then
    wait = -1
  elseif grant < need or room == 0 then
    -- The oldest parts are the first that count no more.
    local missing = used + math.max(need - grant, 1) - amount
    for p = part - parts, part do
      missing = missing - sums[p]
      wait = (p + parts + 1) * part_ms - now
      if missing <= 0 then
        break
      end
    end
  end
end
return {part, now - part * part_ms, grant, room, wait, since}
