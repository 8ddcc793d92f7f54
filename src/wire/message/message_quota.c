/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of the process that asks the quota server. */
#include "vethguard/policy/limits.h"
#include "wire/message/message_codec.h"

static uint32_t addresses(struct codec *c, uint32_t count, struct ip *out)
{
	count = codec_upto(c, count, MESSAGE_QUOTA_ADDRESSES_MAX);
	for (uint32_t i = 0; i < count; i++) {
		out[i] = codec_ip(c, out[i]);
		if (out[i].family == 0)
			codec_fail(c, -EBADMSG);
	}
	return count;
}

static void quota_start_fields(struct codec *c, struct message_quota_start *m)
{
	m->log_level = codec_u8(c, m->log_level);
	m->tls = codec_bool(c, m->tls);
	m->has_password = codec_bool(c, m->has_password);
	m->port = codec_u16(c, m->port);
	m->database = codec_upto(c, m->database, CONFIG_QUOTA_DATABASE_MAX);
	m->host = codec_string(c, m->host, 1, POLICY_HOST_MAX);
	m->user = codec_string(c, m->user, 0, CONFIG_QUOTA_USER_MAX);
	m->address_count = addresses(c, m->address_count, m->addresses);
	m->server_count = codec_upto(c, m->server_count, CONFIG_SERVERS_MAX);
	for (uint32_t i = 0; i < m->server_count; i++)
		m->servers[i] = codec_server(c, m->servers[i]);
	if (!m->port)
		codec_fail(c, -EBADMSG);
}
CODEC_PAIR(quota_start)

static bool is_budget(const struct message_quota_budget *b)
{
	for (size_t i = 0; i < b->name.n; i++)
		if (!strchr("0123456789abcdef", b->name.p[i]))
			return false;
	return b->period_s >= POLICY_HOSTS_PERIOD_MIN_S &&
	       b->period_s <= POLICY_LIMIT_PERIOD_MAX_S && b->amount > 0 &&
	       b->amount <= POLICY_LIMIT_AMOUNT_MAX;
}

static void quota_budgets_fields(struct codec *c, struct message_quota_budgets *m)
{
	m->memory = codec_u64(c, m->memory);
	m->count = codec_upto(c, m->count, MESSAGE_QUOTA_BUDGETS_MAX);
	for (uint32_t i = 0; i < m->count && !c->error; i++) {
		struct message_quota_budget *b = &m->budgets[i];

		b->index = codec_upto(c, b->index, MESSAGE_QUOTA_BUDGETS_MAX - 1);
		b->period_s = codec_u32(c, b->period_s);
		b->amount = codec_u64(c, b->amount);
		b->name = codec_string(
		        c, b->name, MESSAGE_QUOTA_NAME_BYTES, MESSAGE_QUOTA_NAME_BYTES);
		if (!is_budget(b))
			codec_fail(c, -EBADMSG);
	}
}
CODEC_PAIR(quota_budgets)

static void quota_end_fields(struct codec *c, struct message_quota_end *m)
{
	m->memory = codec_u64(c, m->memory);
}
CODEC_PAIR(quota_end)
