/* SPDX-License-Identifier: Apache-2.0 */
/* The line's message: one sentence that a person understands without the rest of the line. Raw
 * bytes; json_string() escapes them. */
#include <stdio.h>

#include "vethguard/wire/dns.h"
#include "vethguard/wire/packet.h"

#include "recorder/ocsf/parts.h"
#include "recorder/input/packets.h"

#define TARGET_SHOWN_MAX 128

struct sentence {
	char *p;
	size_t n, cap;
};

static void add(struct sentence *s, struct slice text)
{
	size_t n = text.n < s->cap - s->n ? text.n : s->cap - s->n;

	if (n)
		memcpy(s->p + s->n, text.p, n);
	s->n += n;
}

static void add_text(struct sentence *s, const char *text)
{
	add(s, slice_from_string(text));
}

static void add_number(struct sentence *s, uint64_t v)
{
	char digits[20];
	size_t n = sizeof(digits);

	do {
		digits[--n] = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	add(s, slice_of(digits + n, sizeof(digits) - n));
}

static void add_address(struct sentence *s, const struct ip *ip, uint16_t port)
{
	char text[IP_TEXT_MAX];
	bool bracket = ip->family == 6 && port;

	if (!ip->family)
		return;
	add_text(s, bracket ? "[" : "");
	add_text(s, ocsf_ip_text(ip, text));
	add_text(s, bracket ? "]" : "");
	if (port) {
		add_text(s, ":");
		add_number(s, port);
	}
}

static void add_destination(struct sentence *s, const struct ocsf_line *line)
{
	const struct event *e = line->event;
	uint16_t port = ocsf_destination_port(line);

	if (!e->host.n) {
		add_address(s, e->upstream.family ? &e->upstream : &e->dst, port);
		return;
	}
	add(s, e->host);
	if (port) {
		add_text(s, ":");
		add_number(s, port);
	}
}

static bool is_default_port(const struct event *e, uint16_t port)
{
	return port == 0 || (port == 443 && slice_equals(e->scheme, SLICE("https"))) ||
	       (port == 80 && slice_equals(e->scheme, SLICE("http")));
}

static void describe_http(struct sentence *s, const struct ocsf_line *line)
{
	const struct event *e = line->event;
	uint16_t port = ocsf_destination_port(line);

	add(s, e->method.n ? e->method : SLICE("request"));
	add_text(s, " ");
	if (e->scheme.n) {
		add(s, e->scheme);
		add_text(s, "://");
	}
	if (e->host.n && is_default_port(e, port))
		add(s, e->host);
	else
		add_destination(s, line);
	add(s, slice_of(e->target.p,
	               e->target.n < TARGET_SHOWN_MAX ? e->target.n : TARGET_SHOWN_MAX));
}

static void describe_packet(struct sentence *s, const struct ocsf_line *line)
{
	const struct event *e = line->event;
	bool icmp = e->protocol == IPPROTO_ICMP || e->protocol == IPPROTO_ICMPV6;
	char text[16];

	if (e->count > 1) {
		add_number(s, e->count);
		add_text(s, " packets: ");
	}
	if (e->dst.family || e->protocol) {
		add_text(s, packet_protocol_name(e->protocol, text));
		add_text(s, " to ");
		add_address(s, &e->dst, icmp ? 0 : e->dst_port);
	} else if (!e->ethertype) {
		add_text(s, PACKETS_OTHERS);
	} else {
		snprintf(text, sizeof(text), "frame 0x%04x", e->ethertype);
		add_text(s, text);
	}
}

static void describe_call(struct sentence *s, const struct event *e)
{
	add(s, e->operation.n ? e->operation : SLICE("call"));
	if (e->host.n) {
		add_text(s, " ");
		add(s, e->host);
	}
	add_text(s, " by ");
	add(s, e->user);
	if (!e->user.n) {
		add_text(s, "user ");
		add_number(s, e->user_id);
	}
}

static void describe_inbound(struct sentence *s, const struct event *e)
{
	add_text(s, "from ");
	if (e->src.family)
		add_address(s, &e->src, 0);
	else
		add(s, e->user);
	add_text(s, " to port ");
	add_number(s, e->upstream_port);
}

static void describe(struct sentence *s, const struct ocsf_line *line)
{
	const struct event *e = line->event;
	char text[16];

	switch (e->kind) {
	case EVENT_HTTP:
		describe_http(s, line);
		break;
	case EVENT_DNS:
		add_text(s, "DNS ");
		add_text(s, dns_type_name(e->dns_type, text));
		add_text(s, " ");
		add(s, e->host.n ? e->host : SLICE("."));
		break;
	case EVENT_PACKET:
		describe_packet(s, line);
		break;
	case EVENT_INBOUND:
		describe_inbound(s, e);
		break;
	case EVENT_API:
		describe_call(s, e);
		break;
	default:
		add_text(s, packet_protocol_name(e->protocol, text));
		add_text(s, " ");
		add_destination(s, line);
	}
}

/* The policy was loaded again and is the same. */
static bool is_same_policy(const struct event *e)
{
	return e->old_fingerprint.n && slice_equals(e->old_fingerprint, e->fingerprint);
}

static void describe_lifecycle(struct sentence *s, const struct ocsf_line *line)
{
	static const char *const what[] = {
	        [EVENT_START] = " started",
	        [EVENT_STOP] = " stopped",
	        [EVENT_ADOPTED] = " taken up again after a restart of vethguardd",
	        [EVENT_WORKER_REPLACED] = " served by another worker",
	        [EVENT_PAUSED] = " paused",
	        [EVENT_RESUMED] = " resumed",
	        [EVENT_POLICY_CHANGED] = " under another policy",
	        [EVENT_LOG_OPENED] = " goes on in a new audit file",
	        [EVENT_LOG_ENDED] = " ends this audit file: the log goes on in another one",
	};
	_Static_assert(sizeof(what) / sizeof(what[0]) == EVENT_LIFECYCLE_COUNT, "one each");
	const struct event *e = line->event;

	add_text(s, line->sandbox->policy.len ? "sandbox " : "");
	add_text(s, line->sandbox->name);
	if (e->lifecycle == EVENT_POLICY_CHANGED && is_same_policy(e))
		add_text(s, " under the same policy, read anew");
	else
		add_text(s, what[e->lifecycle]);
	if (e->lifecycle == EVENT_POLICY_CHANGED) {
		add_text(s, ": ");
		add(s, e->policy);
		add_text(s, ", generation ");
		add_number(s, e->generation);
	} else if (e->detail.n) {
		add_text(s, ": ");
		add(s, e->detail);
	}
}

static void describe_finding(struct sentence *s, const struct ocsf_line *line)
{
	const struct event *e = line->event;

	add_text(s, event_finding_title(e->finding));
	if (e->detail.n) {
		add_text(s, ": ");
		add(s, e->detail);
	}
}

struct slice ocsf_message(const struct ocsf_line *line, char *out, size_t out_size)
{
	static const char *const outcomes[] = {
	        [EVENT_ALLOWED] = " allowed",
	        [EVENT_DENIED] = " denied",
	        [EVENT_OBSERVED] = " allowed in mode observe, to be denied",
	        [EVENT_DROPPED] = " dropped",
	};
	_Static_assert(sizeof(outcomes) / sizeof(outcomes[0]) == EVENT_DECISION_COUNT, "one each");
	const struct event *e = line->event;
	struct sentence s = {out, 0, out_size};
	char reason[OCSF_REASON_MAX];

	if (e->kind == EVENT_FINDING || e->kind == EVENT_LIFECYCLE) {
		(e->kind == EVENT_FINDING ? describe_finding : describe_lifecycle)(&s, line);
		return slice_of(out, s.n);
	}
	describe(&s, line);
	add_text(&s, event_is_failure(e) ? " failed" : outcomes[e->decision]);
	add_text(&s, e->callback ? " (for another proxy)" : "");
	if (!ocsf_is_plain(e) && e->kind != EVENT_PACKET) {
		add_text(&s, ": ");
		add(&s, ocsf_reason_text(e, reason, sizeof(reason)));
	}
	return slice_of(out, s.n);
}
