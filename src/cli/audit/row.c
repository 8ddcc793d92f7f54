/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns an OCSF event into a row. Anybody may have written the file: every text is escaped to
 * printable ASCII before it is kept, and an attribute that is missing or of the wrong type is shown
 * as nothing.
 */
#include <jansson.h>

#include "cli/audit/audit.h"

enum {
	ACTIVITY_START = 3,
	ACTIVITY_STOP = 4,
	ACTIVITY_RESTART = 5,
	ACTIVITY_ENABLE = 6,
	ACTIVITY_DISABLE = 7,
	ACTIVITY_UPDATE = 8,
	ACTIVITY_OTHER = 99 /* the last line of an audit file has it */
};

const json_t *audit_member(const json_t *tree, const char *path)
{
	for (;;) {
		const char *dot = strchr(path, '.');
		char key[32];
		size_t n = dot ? (size_t)(dot - path) : strlen(path);

		if (n >= sizeof(key))
			return NULL;
		memcpy(key, path, n);
		key[n] = '\0';
		tree = json_object_get(tree, key);
		if (!dot || !tree)
			return tree;
		path = dot + 1;
	}
}

int64_t audit_number(const json_t *tree, const char *path)
{
	return json_integer_value(audit_member(tree, path));
}

struct slice audit_text(const json_t *tree, const char *path)
{
	const json_t *value = audit_member(tree, path);

	return slice_of(json_string_value(value), json_string_length(value));
}

/* Appends escaped text to a NUL-terminated one. */
static void add(char *out, size_t out_size, struct slice value)
{
	size_t n = strlen(out);

	if (value.n && n + 1 < out_size)
		slice_escape(value, out + n, out_size - n);
}

static void add_text(char *out, size_t out_size, const char *value)
{
	add(out, out_size, slice_from_string(value));
}

static void add_port(char *out, size_t out_size, int64_t port)
{
	char shown[24];

	snprintf(shown, sizeof(shown), ":%lld", (long long)port);
	if (port)
		add_text(out, out_size, shown);
}

static void add_port_alone(char *out, size_t out_size, int64_t port)
{
	char shown[24];

	snprintf(shown, sizeof(shown), "%lld", (long long)port);
	add_text(out, out_size, shown);
}

static void add_destination(struct audit_row *row, const json_t *event)
{
	struct slice name = audit_text(event, "dst_endpoint.hostname");
	struct slice address = audit_text(event, "dst_endpoint.ip");
	bool bracket = !name.n && slice_find_byte(address, ':') >= 0;

	add_text(row->what, sizeof(row->what), bracket ? "[" : "");
	add(row->what, sizeof(row->what), name.n ? name : address);
	add_text(row->what, sizeof(row->what), bracket ? "]" : "");
	add_port(row->what, sizeof(row->what), audit_number(event, "dst_endpoint.port"));
}

static bool is_default_port(struct slice scheme, int64_t port)
{
	return (port == 443 && slice_equals(scheme, SLICE("https"))) ||
	       (port == 80 && slice_equals(scheme, SLICE("http")));
}

/* Adds the names that the request asks for: a method alone says little beside a path that all
 * requests share. */
static void add_asked(struct audit_row *row, const json_t *event)
{
	static const char *const lists[] = {"mcp_tools", "jsonrpc_methods", "graphql_fields",
	        "llm_models", "git_pushes", "git_forced", "git_deleted"};
	const json_t *request = audit_member(event, "unmapped.request");
	const json_t *methods = json_object_get(request, "mcp_methods");
	unsigned count = 0;

	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
		const json_t *list = json_object_get(request, lists[i]);

		if (i == 0 && json_array_size(list) == 0)
			list = methods;
		for (size_t k = 0; k < json_array_size(list); k++) {
			const json_t *text = json_array_get(list, k);

			add_text(row->what, sizeof(row->what), count++ ? ", " : " (");
			add(row->what, sizeof(row->what),
			        slice_of(json_string_value(text), json_string_length(text)));
		}
	}
	add_text(row->what, sizeof(row->what), count ? ")" : "");
}

static void read_http(struct audit_row *row, const json_t *event)
{
	struct slice method = audit_text(event, "http_request.http_method");
	struct slice scheme = audit_text(event, "http_request.url.scheme");
	struct slice host = audit_text(event, "http_request.url.hostname");
	struct slice query = audit_text(event, "http_request.url.query_string");
	int64_t port = audit_number(event, "http_request.url.port");

	add(row->what, sizeof(row->what), method.n ? method : audit_text(event, "activity_name"));
	add_text(row->what, sizeof(row->what), " ");
	add(row->what, sizeof(row->what), scheme);
	add_text(row->what, sizeof(row->what), scheme.n ? "://" : "");
	if (host.n) {
		add(row->what, sizeof(row->what), host);
		add_port(row->what, sizeof(row->what), is_default_port(scheme, port) ? 0 : port);
	} else { /* a request without a valid host: show where its connection went */
		add_destination(row, event);
	}
	add(row->what, sizeof(row->what), audit_text(event, "http_request.url.path"));
	add_text(row->what, sizeof(row->what), query.n ? "?" : "");
	add(row->what, sizeof(row->what), query);
	add_asked(row, event);
}

static void read_dns(struct audit_row *row, const json_t *event)
{
	add_text(row->what, sizeof(row->what), "DNS ");
	add(row->what, sizeof(row->what), audit_text(event, "query.type"));
	add_text(row->what, sizeof(row->what), " ");
	add(row->what, sizeof(row->what), audit_text(event, "query.hostname"));
}

/* True if it began with a ClientHello. */
static bool is_tls(const json_t *event)
{
	return audit_text(event, "tls.sni").n > 0;
}

/* True for what tcp:// and udp:// rules are about; it is shown as such a rule names it. */
static bool is_relayed(const json_t *event, struct slice protocol)
{
	return audit_number(event, "disposition_id") != DISPOSITION_DROPPED &&
	       (slice_equals(protocol, SLICE("tcp")) || slice_equals(protocol, SLICE("udp")));
}

/* A connection to a port that the sandbox exposes: from an address, or from another sandbox. */
static void read_inbound(struct audit_row *row, const json_t *event)
{
	struct slice address = audit_text(event, "src_endpoint.ip");

	add_text(row->what, sizeof(row->what), "from ");
	add(row->what, sizeof(row->what),
	        address.n ? address : audit_text(event, "src_endpoint.name"));
	add_text(row->what, sizeof(row->what), " to port ");
	add_port_alone(row->what, sizeof(row->what), audit_number(event, "dst_endpoint.port"));
}

static void read_network(struct audit_row *row, const json_t *event)
{
	struct slice protocol = audit_text(event, "connection_info.protocol_name");
	struct slice frame = audit_text(event, "unmapped.ethertype");
	char count[40];

	if (audit_number(event, "connection_info.direction_id") == DIRECTION_INBOUND) {
		read_inbound(row, event);
		return;
	}
	if (frame.n)
		add_text(row->what, sizeof(row->what), "frame ");
	if (is_tls(event))
		protocol = SLICE("tls");
	add(row->what, sizeof(row->what), frame.n ? frame : protocol);
	if (!frame.n && !protocol.n && !audit_member(event, "dst_endpoint"))
		add_text(row->what, sizeof(row->what), "various kinds");
	add_text(row->what, sizeof(row->what), is_relayed(event, protocol) ? "://" : " ");
	add_destination(row, event);
	if (audit_number(event, "count") > 1) {
		snprintf(count, sizeof(count), " (%lld packets)",
		        (long long)audit_number(event, "count"));
		add_text(row->what, sizeof(row->what), count);
	}
}

static void read_finding(struct audit_row *row, const json_t *event)
{
	row->decision = AUDIT_FINDING;
	add(row->what, sizeof(row->what), audit_text(event, "finding_info.title"));
	add(row->why, sizeof(row->why), audit_text(event, "finding_info.desc"));
}

static enum audit_decision lifecycle_decision(int64_t activity)
{
	switch (activity) {
	case ACTIVITY_START:
		return AUDIT_STARTED;
	case ACTIVITY_STOP:
		return AUDIT_STOPPED;
	case ACTIVITY_RESTART:
		return AUDIT_RESTARTED;
	case ACTIVITY_ENABLE:
		return AUDIT_RESUMED;
	case ACTIVITY_DISABLE:
		return AUDIT_PAUSED;
	case ACTIVITY_UPDATE:
	case ACTIVITY_OTHER:
		return AUDIT_CHANGED;
	default:
		return AUDIT_OTHER;
	}
}

static void read_lifecycle(struct audit_row *row, const json_t *event)
{
	struct slice policy = audit_text(event, "policy.name");
	struct slice detail = audit_text(event, "status_detail");

	row->decision = lifecycle_decision(audit_number(event, "activity_id"));
	/* a command or a cause; else the sentence */
	add(row->what, sizeof(row->what), detail.n ? detail : audit_text(event, "message"));
	if (policy.n) {
		add_text(row->why, sizeof(row->why), "policy ");
		add(row->why, sizeof(row->why), policy);
	}
}

static void read_call(struct audit_row *row, const json_t *event)
{
	const json_t *about = json_array_get(audit_member(event, "resources"), 0);
	struct slice user = audit_text(event, "actor.user.name");

	add(row->what, sizeof(row->what), audit_text(event, "api.operation"));
	add_text(row->what, sizeof(row->what), about ? " " : "");
	add(row->what, sizeof(row->what), audit_text(about, "name"));
	add_text(row->what, sizeof(row->what), user.n ? " by " : " by user ");
	add(row->what, sizeof(row->what), user.n ? user : audit_text(event, "actor.user.uid"));
}

static enum audit_decision read_decision(const json_t *event)
{
	int64_t action = audit_number(event, "action_id");
	int64_t disposition = audit_number(event, "disposition_id");

	/* in mode observe people look for what was let pass, even if it failed then */
	if (disposition == DISPOSITION_ERROR && action != ACTION_OBSERVED)
		return AUDIT_FAILED;
	if (disposition == DISPOSITION_DROPPED)
		return AUDIT_DROPPED;
	return action == ACTION_ALLOWED    ? AUDIT_ALLOWED
	       : action == ACTION_DENIED   ? AUDIT_DENIED
	       : action == ACTION_OBSERVED ? AUDIT_OBSERVED
	                                   : AUDIT_OTHER;
}

static void read_why(struct audit_row *row, const json_t *event)
{
	struct slice rule = audit_text(event, "firewall_rule.name");
	struct slice detail = audit_text(event, "status_detail");
	struct slice credential = audit_text(event, "unmapped.credential");

	add_text(row->why, sizeof(row->why), row->decision == AUDIT_DROPPED ? "fence: " : "");
	add(row->why, sizeof(row->why), rule);
	/* the rule also names the credential of a request that was refused before it was sent */
	if (credential.n && audit_number(event, "action_id") == ACTION_ALLOWED) {
		add_text(row->why, sizeof(row->why), " (credential ");
		add(row->why, sizeof(row->why), credential);
		add_text(row->why, sizeof(row->why), ")");
	}
	if (rule.n && detail.n && row->decision != AUDIT_DROPPED)
		add_text(row->why, sizeof(row->why), ": ");
	if (!rule.n || row->decision != AUDIT_DROPPED)
		add(row->why, sizeof(row->why), detail);
}

bool audit_row_is_about(const json_t *event, const char *uid)
{
	const json_t *related = audit_member(event, "finding_info.related_events");

	if (slice_equals(audit_text(event, "metadata.uid"), slice_from_string(uid)))
		return true;
	for (size_t i = 0; i < json_array_size(related); i++)
		if (slice_equals(
		            audit_text(json_array_get(related, i), "uid"), slice_from_string(uid)))
			return true;
	return false;
}

bool audit_row_read(const json_t *event, struct audit_row *row)
{
	int64_t class = audit_number(event, "class_uid");

	memset(row, 0, sizeof(*row));
	if (!json_is_object(event) || !json_is_integer(audit_member(event, "time")))
		return false;
	row->time_ms = audit_number(event, "time");
	add(row->sandbox, sizeof(row->sandbox), audit_text(event, "device.name"));
	row->decision = read_decision(event);
	row->refused = audit_number(event, "action_id") == ACTION_DENIED && class != CLASS_FINDING;
	row->has_bytes = json_is_integer(audit_member(event, "traffic.bytes"));
	row->bytes = audit_number(event, "traffic.bytes");
	switch (class) {
	case CLASS_HTTP:
		read_http(row, event);
		break;
	case CLASS_DNS:
		read_dns(row, event);
		break;
	case CLASS_NETWORK:
		read_network(row, event);
		break;
	case CLASS_API:
		read_call(row, event);
		break;
	case CLASS_FINDING:
		read_finding(row, event);
		return true;
	case CLASS_LIFECYCLE:
		read_lifecycle(row, event);
		return true;
	default:
		return false;
	}
	read_why(row, event);
	return true;
}

const char *audit_decision_name(enum audit_decision decision)
{
	static const char *const names[] = {
	        [AUDIT_ALLOWED] = "allowed",
	        [AUDIT_DENIED] = "denied",
	        [AUDIT_OBSERVED] = "observed",
	        [AUDIT_DROPPED] = "dropped",
	        [AUDIT_FAILED] = "failed",
	        [AUDIT_FINDING] = "FINDING",
	        [AUDIT_STARTED] = "started",
	        [AUDIT_STOPPED] = "stopped",
	        [AUDIT_RESTARTED] = "again",
	        [AUDIT_PAUSED] = "paused",
	        [AUDIT_RESUMED] = "resumed",
	        [AUDIT_CHANGED] = "changed",
	        [AUDIT_OTHER] = "other",
	};
	_Static_assert(sizeof(names) / sizeof(names[0]) == AUDIT_DECISION_COUNT, "one name each");

	return names[decision];
}
