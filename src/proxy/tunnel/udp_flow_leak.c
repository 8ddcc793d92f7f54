/* SPDX-License-Identifier: Apache-2.0 */
/* Looks for placeholders of credentials in datagrams. They cannot be filled in there. */
#include "proxy/tunnel/private.h"
#include "vethguard/base/clock.h"

/* Records a placeholder in a datagram or in the host's name, once for each flow. */
static void note_leak(struct udp_flow *f, const char *where)
{
	struct proxy *proxy = f->relay->proxy;
	const struct event e = {
	        .id = proxy_event_id(proxy),
	        .kind = EVENT_FINDING,
	        .time_ms = clock_real_ms(),
	        .decision =
	                policy_refuses_leaks(proxy->config.policy) ? EVENT_DENIED : EVENT_ALLOWED,
	        .finding = EVENT_FINDING_PLACEHOLDER_LEAK,
	        .src = f->key.src,
	        .src_port = f->key.src_port,
	        .dst = f->key.dst,
	        .dst_port = f->key.dst_port,
	        .protocol = IPPROTO_UDP,
	        .host = destination_host(&f->destination),
	        .detail = slice_from_string(where),
	};

	if (!f->leak_told)
		proxy->config.record(proxy->config.context, &e);
	f->leak_told = true;
}

bool udp_flow_name_leaks(struct udp_flow *f)
{
	const struct proxy *proxy = f->relay->proxy;

	if (!credential_store_name_mentions(
	            proxy->config.credentials, destination_host(&f->destination)))
		return false;
	note_leak(f, UDP_FLOW_NAME_TEXT);
	return policy_refuses_leaks(proxy->config.policy);
}

bool udp_flow_leaks(struct udp_flow *f, const uint8_t *p, size_t n)
{
	const struct proxy *proxy = f->relay->proxy;

	if (!credential_store_mentions_placeholder(proxy->config.credentials, slice_of(p, n), 0))
		return false;
	note_leak(f, "a credential's placeholder was sent where it does not belong: in a datagram");
	return policy_refuses_leaks(proxy->config.policy);
}
