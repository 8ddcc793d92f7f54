/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event: theory of operation
 *
 * An encoded event is a fixed head, a 64-bit map of the optional fields that are present, and those
 * fields in the order of FIELDS. Numbers are in network byte order; texts follow a 16-bit length. A
 * field that is zero or empty is left out, and the decoder refuses such a field if it is present.
 * So every event has exactly one encoding, and nothing can be hidden in a second spelling.
 *
 * The list of fields is one X-macro; presence, size, writing and reading are generated from it and
 * cannot disagree.
 */
#include <errno.h>

#include "vethguard/policy/policy.h"
#include "vethguard/wire/event.h"

/* Never reorder within a release: worker and recorder are built together, but the fuzz corpus is
 * not. */
#define FIELDS(X)                \
	X(u32, duration_us)      \
	X(u8, policy_reason)     \
	X(text, rule)            \
	X(text, credential)      \
	X(text, detail)          \
	X(ip, src)               \
	X(ip, dst)               \
	X(ip, upstream)          \
	X(u16, src_port)         \
	X(u16, dst_port)         \
	X(u16, upstream_port)    \
	X(text, host)            \
	X(u8, protocol)          \
	X(u64, bytes_out)        \
	X(u64, bytes_in)         \
	X(text, sni)             \
	X(u16, tls_version)      \
	X(flag, passthrough)     \
	X(text, scheme)          \
	X(text, method)          \
	X(text, target)          \
	X(text, user_agent)      \
	X(u16, status)           \
	X(u8, http_version)      \
	X(u16, dns_id)           \
	X(u16, dns_type)         \
	X(u16, dns_class)        \
	X(u8, dns_rcode)         \
	X(ip, answer)            \
	X(u16, ethertype)        \
	X(u64, count)            \
	X(u64, last_ms)          \
	X(text, verdict_rule)    \
	X(u8, finding)           \
	X(u64, about)            \
	X(u8, lifecycle)         \
	X(text, policy)          \
	X(text, fingerprint)     \
	X(text, old_policy)      \
	X(text, old_fingerprint) \
	X(u64, generation)       \
	X(text, operation)       \
	X(text, user)            \
	X(u32, user_id)          \
	X(u32, process_id)       \
	X(flag, callback)        \
	X(text, facts)

enum field_bit {
#define BIT(type, field) BIT_##field,
	FIELDS(BIT)
#undef BIT
	        BIT_COUNT
};
_Static_assert(BIT_COUNT <= 64, "the map of fields is 64 bits");

#define HEAD_BYTES (8 + 8 + 1 + 1 + 1 + 8) /* id, time, kind, decision, cause, map */

/* For each type: whether it is present, how many bytes it takes, writing, reading. */
#define there_u8(v) ((v) != 0)
#define there_u16(v) ((v) != 0)
#define there_u32(v) ((v) != 0)
#define there_u64(v) ((v) != 0)
#define there_flag(v) (v)
#define there_ip(v) ((v).family != 0)
#define there_text(v) ((v).n != 0)

static size_t text_length(struct slice v, size_t text_max)
{
	return v.n < text_max ? v.n : text_max;
}

static size_t address_length(const struct ip *ip)
{
	return ip->family == 4 ? 4 : 16;
}

#define size_u8(v, text_max) 1
#define size_u16(v, text_max) 2
#define size_u32(v, text_max) 4
#define size_u64(v, text_max) 8
#define size_flag(v, text_max) 0 /* presence is the value */
#define size_ip(v, text_max) (1 + address_length(&(v)))
#define size_text(v, text_max) (2 + text_length(v, text_max))

#define put_u8(w, v, text_max) writer_u8(w, (uint8_t)(v))
#define put_u16(w, v, text_max) writer_u16(w, v)
#define put_u32(w, v, text_max) writer_u32(w, v)
#define put_u64(w, v, text_max) writer_u64(w, (uint64_t)(v))
#define put_flag(w, v, text_max) (void)0
#define put_ip(w, v, text_max) put_address(w, &(v))
#define put_text(w, v, text_max) put_bounded(w, v, text_max)

#define get_u8(r, v) (*(v) = reader_u8(r))
#define get_u16(r, v) (*(v) = reader_u16(r))
#define get_u32(r, v) (*(v) = reader_u32(r))
#define get_u64(r, v) (*(v) = reader_u64(r))
#define get_flag(r, v) (*(v) = true)
#define get_ip(r, v) get_address(r, v)
#define get_text(r, v) (*(v) = reader_vector(r, 2, EVENT_TEXT_MAX))

static void put_address(struct writer *w, const struct ip *ip)
{
	writer_u8(w, ip->family == 4 ? 4 : 6);
	writer_bytes(w, ip->bytes, address_length(ip));
}

static void put_bounded(struct writer *w, struct slice v, size_t text_max)
{
	writer_vector(w, 2, slice_of(v.p, text_length(v, text_max)));
}

static void get_address(struct reader *r, struct ip *ip)
{
	ip->family = reader_u8(r);
	if (ip->family != 4 && ip->family != 6)
		r->failed = true;
	else
		reader_copy(r, ip->bytes, address_length(ip));
}

static uint64_t fields_there(const struct event *event)
{
	uint64_t map = 0;

#define MARK(type, field) map |= (uint64_t)there_##type(event->field) << BIT_##field;
	FIELDS(MARK)
#undef MARK
	return map;
}

static size_t encoded_size(const struct event *event, uint64_t map, size_t text_max)
{
	size_t n = HEAD_BYTES;

#define ADD(type, field)            \
	if (map >> BIT_##field & 1) \
		n += size_##type(event->field, text_max);
	FIELDS(ADD)
#undef ADD
	return n;
}

/* Four texts of the largest size fill an event. If there are more, all are cut shorter. */
static size_t text_bound(const struct event *event, uint64_t map)
{
	size_t text_max = EVENT_TEXT_MAX;

	while (encoded_size(event, map, text_max) > EVENT_BYTES_MAX)
		text_max /= 2;
	return text_max;
}

static uint64_t bounded_time(int64_t ms)
{
	return ms < 0 ? 0 : ms > EVENT_TIME_MAX_MS ? EVENT_TIME_MAX_MS : (uint64_t)ms;
}

static bool is_http_version(uint8_t v)
{
	return v == 10 || v == 11 || v == 20;
}

static bool is_status(uint16_t v)
{
	return v >= 100 && v <= 999;
}

/* Values that an upstream may have sent must not make an event that the recorder refuses. */
static void normalise(struct event *event)
{
	if (event->kind == EVENT_PACKET && event->count == 0)
		event->count = 1;
	if (!is_status(event->status))
		event->status = 0;
	if (!is_http_version(event->http_version))
		event->http_version = 0;
}

size_t event_encode(const struct event *original, uint8_t *out, size_t cap)
{
	struct writer w = writer_over(out, cap);
	struct event copy = *original, *event = &copy;
	uint64_t map;
	size_t text_max;

	event->last_ms = (int64_t)bounded_time(event->last_ms);
	normalise(event);
	map = fields_there(event);
	text_max = text_bound(event, map);
	writer_u64(&w, event->id);
	writer_u64(&w, bounded_time(event->time_ms));
	writer_u8(&w, (uint8_t)event->kind);
	writer_u8(&w, (uint8_t)event->decision);
	writer_u8(&w, (uint8_t)event->cause);
	writer_u64(&w, map);
#define PUT(type, field)            \
	if (map >> BIT_##field & 1) \
		put_##type(&w, event->field, text_max);
	FIELDS(PUT)
#undef PUT
	return w.failed ? 0 : w.len;
}

static bool in_range(const struct event *e)
{
	if (e->kind >= EVENT_KIND_COUNT || e->decision >= EVENT_DECISION_COUNT)
		return false;
	if (e->cause >= EVENT_CAUSE_COUNT || e->finding >= EVENT_FINDING_COUNT)
		return false;
	if (e->policy_reason >= POLICY_REASON_COUNT || e->lifecycle >= EVENT_LIFECYCLE_COUNT)
		return false;
	if (e->time_ms < 0 || e->time_ms > EVENT_TIME_MAX_MS)
		return false;
	if (e->last_ms < 0 || e->last_ms > EVENT_TIME_MAX_MS)
		return false;
	if (e->http_version != 0 && !is_http_version(e->http_version))
		return false;
	if (e->status != 0 && !is_status(e->status))
		return false;
	if (e->kind == EVENT_PACKET && e->count == 0)
		return false;
	return e->kind != EVENT_FINDING || e->finding != EVENT_FINDING_NONE;
}

static void read_head(struct reader *r, struct event *out, uint64_t *map)
{
	out->id = reader_u64(r);
	out->time_ms = (int64_t)reader_u64(r);
	out->kind = (enum event_kind)reader_u8(r);
	out->decision = (enum event_decision)reader_u8(r);
	out->cause = (enum event_cause)reader_u8(r);
	*map = reader_u64(r);
}

int event_decode(const uint8_t *p, size_t n, struct event *out)
{
	struct reader r = reader_over(p, n);
	uint64_t map;

	memset(out, 0, sizeof(*out));
	if (n > EVENT_BYTES_MAX)
		return -EBADMSG;
	read_head(&r, out, &map);
#define GET(type, field)            \
	if (map >> BIT_##field & 1) \
		get_##type(&r, &out->field);
	FIELDS(GET)
#undef GET
	if (!reader_done(&r) || map >> BIT_COUNT != 0 || fields_there(out) != map || !in_range(out))
		return -EBADMSG;
	return 0;
}

#define STATUS_GATEWAY_TIMEOUT 504 /* RFC 9110 section 15.6.5: the upstream took too long */

bool event_upstream_failed(const struct event *e)
{
	return e->cause == EVENT_CAUSE_RESOLVE || e->cause == EVENT_CAUSE_CONNECT ||
	       e->cause == EVENT_CAUSE_UPSTREAM_TLS || e->cause == EVENT_CAUSE_UPSTREAM ||
	       (e->cause == EVENT_CAUSE_TIMEOUT && e->status == STATUS_GATEWAY_TIMEOUT);
}

bool event_is_failure(const struct event *e)
{
	return e->decision == EVENT_DENIED && event_upstream_failed(e);
}

const char *event_cause_text(enum event_cause cause)
{
	static const char *const texts[] = {
	        [EVENT_CAUSE_POLICY] = "decided by the policy",
	        [EVENT_CAUSE_BINDING] = "rule, TLS name, Host, resolved name and certificate "
	                                "do not name the same host",
	        [EVENT_CAUSE_CREDENTIAL] = "the credential could not be read",
	        [EVENT_CAUSE_RESOLVE] = "the name did not resolve",
	        [EVENT_CAUSE_ADDRESS] = "the name resolves only to addresses that are never dialed",
	        [EVENT_CAUSE_CONNECT] = "no address of the destination accepted a connection",
	        [EVENT_CAUSE_UPSTREAM_TLS] = "TLS with the destination failed or its certificate "
	                                     "did not verify",
	        [EVENT_CAUSE_UPSTREAM] = "the destination broke the protocol or the connection",
	        [EVENT_CAUSE_CLIENT] = "the sandbox broke the protocol or the connection",
	        [EVENT_CAUSE_TIMEOUT] = "a time limit was reached",
	        [EVENT_CAUSE_LIMIT] = "a limit of this sandbox was reached",
	        [EVENT_CAUSE_UNREADABLE] = "the response could not be scanned for the credential",
	        [EVENT_CAUSE_CLOSING] = "vethguard is stopping",
	        [EVENT_CAUSE_CALLER] = "the call is impossible or not permitted",
	        [EVENT_CAUSE_POLICY_CHANGED] = "the policy was changed while it was under way",
	        [EVENT_CAUSE_SEARCH_LIST] = "an allowed name with a domain of a search list behind "
	                                    "it, so that name does not exist",
	        [EVENT_CAUSE_PAUSED] = "the sandbox is paused",
	        [EVENT_CAUSE_POLICY_LIMIT] = "a limit of the policy was met",
	        [EVENT_CAUSE_ASK] = "no person has approved it",
	};
	_Static_assert(sizeof(texts) / sizeof(texts[0]) == EVENT_CAUSE_COUNT, "one text per cause");

	return (unsigned)cause < EVENT_CAUSE_COUNT ? texts[cause] : "unknown cause";
}

const char *event_finding_title(enum event_finding finding)
{
	static const char *const titles[] = {
	        [EVENT_FINDING_NONE] = "No finding",
	        [EVENT_FINDING_BINDING_MISMATCH] = "Credential binding mismatch",
	        [EVENT_FINDING_PLACEHOLDER_LEAK] = ("Credential placeholder sent where it does not "
	                                            "belong"),
	        [EVENT_FINDING_CREDENTIAL_ECHO] = "Credential echoed by the destination and masked",
	        [EVENT_FINDING_DNS_TUNNEL] = "DNS names that look like carried data",
	        [EVENT_FINDING_SMUGGLING] = "Ambiguous HTTP message",
	        [EVENT_FINDING_PRIVATE_ADDRESS] = "Name resolves to a refused address",
	        [EVENT_FINDING_FENCE_CHANGED] = "Kernel rules of the fence were changed",
	        [EVENT_FINDING_ROLE_DIED] = "A vethguard process ended unexpectedly",
	        [EVENT_FINDING_BROKEN_STREAM] = "A worker broke its event stream",
	        [EVENT_FINDING_PACKETS_LOST] = "Copies of dropped packets were lost",
	        [EVENT_FINDING_FLOOD] = "A connection was flooded with frames that ask for nothing",
	        [EVENT_FINDING_CREDENTIAL_SENT] = "The sandbox sent a credential itself",
	        [EVENT_FINDING_LOG_OUTAGE] = "The audit log could not be written for a while",
	        [EVENT_FINDING_CUT_OFF] = "A sandbox could not be taken over and is cut off",
	        [EVENT_FINDING_FOREIGN_CREDENTIAL] =
	                ("The sandbox brought a credential that is not "
	                 "the policy's"),
	        [EVENT_FINDING_FOREIGN_PEER] =
	                "Another machine connected to the sandbox's vsock port",
	        [EVENT_FINDING_GUESSED_TOKENS] = "Wrong tokens were shown to the gateway",
	        [EVENT_FINDING_SECRET] = "The sandbox sent a secret",
	        [EVENT_FINDING_BUNDLE_REFUSED] = "A bundle of policies was refused",
	        [EVENT_FINDING_TOOL_CHANGED] = "The description of a tool has changed",
	        [EVENT_FINDING_TOOL_INSTRUCTS] =
	                "The description of a tool gives the model instructions",
	};
	_Static_assert(
	        sizeof(titles) / sizeof(titles[0]) == EVENT_FINDING_COUNT, "one title per finding");

	return (unsigned)finding < EVENT_FINDING_COUNT ? titles[finding] : "Unknown finding";
}

static const char *const kind_names[] = {
        [EVENT_HTTP] = "HTTP",
        [EVENT_DNS] = "DNS",
        [EVENT_CONNECTION] = "CONNECTION",
        [EVENT_FLOW] = "FLOW",
        [EVENT_PACKET] = "PACKET",
        [EVENT_LIFECYCLE] = "LIFECYCLE",
        [EVENT_FINDING] = "FINDING",
        [EVENT_API] = "API",
        [EVENT_INBOUND] = "INBOUND",
};
_Static_assert(sizeof(kind_names) / sizeof(kind_names[0]) == EVENT_KIND_COUNT, "a name per kind");

const char *event_kind_name(enum event_kind kind)
{
	return kind_names[kind];
}
