/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns events into different requests. A finding often comes after the denial that it is about, so
 * this file only collects the ids and hosts of findings; they are compared with the denials once
 * everything is read.
 */
#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

#include "cli/audit/audit.h"
#include "cli/audit/suggest.h"

#define KEY_MAX 4096

int suggest_init(struct suggest *s)
{
	memset(s, 0, sizeof(*s));
	s->index = json_object();
	s->findings = json_object();
	return s->index && s->findings ? 0 : -ENOMEM;
}

static void drop(struct suggest_ask *ask)
{
	free(ask->policy);
	free(ask->host);
	free(ask->method);
	free(ask->path);
	free(ask->what);
	free(ask->credential);
	free(ask->refused_by);
	free(ask->place);
	json_decref(ask->values);
}

void suggest_fini(struct suggest *s)
{
	for (size_t i = 0; i < s->count; i++)
		drop(&s->asks[i]);
	free(s->asks);
	free(s->denials);
	json_decref(s->index);
	json_decref(s->findings);
	memset(s, 0, sizeof(*s));
}

/* Makes room for one more item of size bytes. Returns 0, -E2BIG or -ENOMEM. */
static int grow(void **items, size_t count, size_t *room, size_t size, size_t max)
{
	size_t wanted = *room ? *room * 2 : 64;
	void *more;

	if (count >= max)
		return -E2BIG;
	if (count < *room)
		return 0;
	more = realloc(*items, wanted * size);
	if (!more)
		return -ENOMEM;
	*items = more;
	*room = wanted;
	return 0;
}

/* Replaces each NUL by another control character, so that no text ends early and passes for a
 * shorter one. */
static char *copy_of(struct slice text)
{
	char *copy = malloc(text.n + 1);

	for (size_t i = 0; copy && i < text.n; i++)
		copy[i] = text.p[i] ? text.p[i] : '\1';
	if (copy)
		copy[text.n] = '\0';
	return copy;
}

static int note(struct suggest *s, struct slice about)
{
	if (about.n == 0)
		return 0;
	if (json_object_size(s->findings) >= SUGGEST_FINDINGS_MAX)
		return -E2BIG;
	return json_object_setn_new(s->findings, about.p, about.n, json_true()) == 0 ? 0 : -ENOMEM;
}

/* Notes a name under which data was hidden, and every domain above it except the last label. */
static int note_name(struct suggest *s, struct slice name)
{
	int rc = note(s, name);
	ptrdiff_t dot;

	while (rc == 0 && (dot = slice_find_byte(name, '.')) >= 0) {
		name = slice_of(name.p + dot + 1, name.n - (size_t)dot - 1);
		if (slice_find_byte(name, '.') >= 0)
			rc = note(s, name);
	}
	return rc;
}

static int read_finding(struct suggest *s, const json_t *event)
{
	const json_t *related = audit_member(event, "finding_info.related_events");
	const json_t *evidences = json_object_get(event, "evidences");
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < json_array_size(related); i++)
		rc = note(s, audit_text(json_array_get(related, i), "uid"));
	for (size_t i = 0; rc == 0 && i < json_array_size(evidences); i++) {
		const json_t *evidence = json_array_get(evidences, i);

		rc = note(s, audit_text(evidence, "dst_endpoint.hostname"));
		if (rc == 0)
			rc = note(s, audit_text(evidence, "http_request.url.hostname"));
		if (rc == 0)
			rc = note_name(s, audit_text(evidence, "query.hostname"));
	}
	return rc;
}

/* Tells by the reason of the refusal whether a rule could help at all. */
static enum suggest_exclusion exclusion_of_event(const json_t *event)
{
	static const struct {
		struct slice code;
		enum suggest_exclusion exclusion;
	} codes[] = {
	        {{"default", 7}, SUGGEST_FINE},
	        {{"port", 4}, SUGGEST_FINE},
	        {{"method", 6}, SUGGEST_FINE},
	        {{"path", 4}, SUGGEST_FINE},
	        {{"rule", 4}, SUGGEST_DENY_RULE},
	        {{"upgrade", 7}, SUGGEST_UPGRADE},
	        {{"condition", 9}, SUGGEST_CONDITION},
	};
	struct slice code = audit_text(event, "status_code");

	if (audit_number(event, "disposition_id") == DISPOSITION_DROPPED)
		return SUGGEST_PACKETS;
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (slice_equals(code, codes[i].code))
			return codes[i].exclusion;
	/* A connection that the sandbox ended, or abandoned during a handshake. */
	if (audit_number(event, "class_uid") == CLASS_NETWORK &&
	        (slice_equals(code, SLICE("client")) || slice_equals(code, SLICE("timeout"))))
		return SUGGEST_UNSEEN;
	return SUGGEST_NO_RULE;
}

static int read_http(struct suggest_ask *ask, const json_t *event)
{
	struct slice scheme = audit_text(event, "http_request.url.scheme");
	struct slice host = audit_text(event, "http_request.url.hostname");
	int64_t port = audit_number(event, "http_request.url.port");

	ask->scheme = slice_equals(scheme, SLICE("http")) ? POLICY_HTTP : POLICY_HTTPS;
	ask->port = (uint16_t)(port > 0 && port <= UINT16_MAX ? port : 0);
	ask->host = copy_of(host.n ? host : audit_text(event, "dst_endpoint.ip"));
	ask->method = copy_of(audit_text(event, "http_request.http_method"));
	ask->path = copy_of(audit_text(event, "http_request.url.path"));
	return ask->host && ask->method && ask->path ? 0 : -ENOMEM;
}

static int read_connection(struct suggest_ask *ask, const json_t *event)
{
	struct slice protocol = audit_text(event, "connection_info.protocol_name");
	struct slice host = audit_text(event, "dst_endpoint.hostname");
	int64_t port = audit_number(event, "dst_endpoint.port");
	bool udp = slice_equals(protocol, SLICE("udp"));

	ask->scheme = udp ? POLICY_UDP : POLICY_TCP;
	ask->port = (uint16_t)(port > 0 && port <= UINT16_MAX ? port : 0);
	ask->host = copy_of(host.n ? host : audit_text(event, "dst_endpoint.ip"));
	if (ask->exclusion != SUGGEST_FINE)
		return ask->host ? 0 : -ENOMEM;
	/* The connection would have been HTTP but ended before its request: a tcp:// rule would let
	 * everything through unread. */
	if ((!udp && (ask->port == 443 || ask->port == 80)) || audit_text(event, "tls.sni").n)
		ask->exclusion = SUGGEST_UNSEEN;
	else if (!udp && !slice_equals(protocol, SLICE("tcp")))
		ask->exclusion = SUGGEST_STRANGE;
	return ask->host ? 0 : -ENOMEM;
}

/* Returns the name of the credential whose placeholder a denied request carried to a place where
 * that credential belongs (the worker has checked this), or empty. Only characters of a policy's
 * names are accepted. */
static struct slice shown_credential(const json_t *event)
{
	struct slice name = audit_text(event, "unmapped.credential");

	if (audit_number(event, "class_uid") != CLASS_HTTP || name.n > POLICY_NAME_MAX)
		return SLICE("");
	for (size_t i = 0; i < name.n; i++)
		if (!isalnum((unsigned char)name.p[i]) && !strchr("._-", name.p[i]))
			return SLICE("");
	return name;
}

static int read_ask(struct suggest_ask *ask, const json_t *event, const struct audit_row *row)
{
	int64_t class = audit_number(event, "class_uid");
	struct slice id = audit_text(event, "metadata.uid"), shown = shown_credential(event);
	enum suggest_exclusion exclusion;
	int rc = 0;

	ask->exclusion = exclusion_of_event(event);
	ask->policy = copy_of(audit_text(event, "policy.name"));
	ask->what = strdup(row->what);
	ask->refused_by = copy_of(audit_text(event, "firewall_rule.name"));
	ask->failed = audit_number(event, "action_id") == ACTION_OBSERVED &&
	              audit_number(event, "disposition_id") == DISPOSITION_ERROR;
	ask->last_ms = row->time_ms;
	slice_escape(id, ask->event, sizeof(ask->event));
	if (class == CLASS_HTTP) {
		rc = read_http(ask, event);
		rc = rc ? rc : suggest_facts_read(ask, event);
	} else if (class == CLASS_NETWORK) {
		rc = read_connection(ask, event);
	} else {
		ask->host = copy_of(audit_text(event, "query.hostname"));
		ask->exclusion =
		        ask->exclusion == SUGGEST_FINE ? SUGGEST_NAME_ONLY : ask->exclusion;
	}
	if (rc != 0 || !ask->policy || !ask->what || !ask->host || !ask->refused_by)
		return -ENOMEM;
	if (shown.n && !(ask->credential = copy_of(shown)))
		return -ENOMEM;
	exclusion = suggest_exclusion_of(
	        ask, shown.n ? SLICE("") : audit_text(event, "http_request.url.query_string"));
	if (ask->exclusion == SUGGEST_FINE ||
	        (exclusion != SUGGEST_FINE &&
	                (ask->exclusion == SUGGEST_REFS ||
	                        (ask->exclusion == SUGGEST_UNSEEN && class != CLASS_DNS))))
		ask->exclusion = exclusion;
	return 0;
}

/* Writes what makes two denials the same. */
static size_t key_of(const struct suggest_ask *ask, char key[KEY_MAX])
{
	int n;

	if (ask->kind != SUGGEST_PLAIN &&
	        (ask->exclusion == SUGGEST_FINE || ask->exclusion == SUGGEST_REFS)) {
		char *values = json_dumps(ask->values, JSON_COMPACT | JSON_SORT_KEYS);

		n = snprintf(key, KEY_MAX, "asked\n%d\n%s\n%d\n%s\n%u\n%d\n%s\n%s",
		        (int)ask->exclusion, ask->policy, (int)ask->scheme, ask->host, ask->port,
		        (int)ask->kind, ask->place, values ? values : "");
		free(values);
	} else if (ask->exclusion == SUGGEST_FINE) {
		n = snprintf(key, KEY_MAX, "%s\n%d\n%s\n%u\n%s\n%s", ask->policy, (int)ask->scheme,
		        ask->host, ask->port, ask->method ? ask->method : "",
		        ask->path ? ask->path : "");
	} else if (ask->exclusion == SUGGEST_NAME_ONLY) {
		n = snprintf(key, KEY_MAX, "name\n%s\n%s", ask->policy, ask->host);
	} else {
		n = snprintf(
		        key, KEY_MAX, "%d\n%s\n%s", (int)ask->exclusion, ask->policy, ask->what);
	}
	return n < 0 ? 0 : n < KEY_MAX ? (size_t)n : KEY_MAX - 1;
}

/* Keeps the ask, or counts it if there is one like it. */
static int add(struct suggest *s, struct suggest_ask *ask, size_t *at)
{
	char key[KEY_MAX];
	size_t n = key_of(ask, key);
	const json_t *known = json_object_getn(s->index, key, n);
	int rc;

	if (known) {
		struct suggest_ask *first = &s->asks[json_integer_value(known)];

		*at = (size_t)json_integer_value(known);
		first->count++;
		first->failed += ask->failed;
		first->last_ms = ask->last_ms;
		memcpy(first->event, ask->event, sizeof(first->event));
		if (!first->credential) {
			first->credential = ask->credential;
			ask->credential = NULL;
		}
		drop(ask);
		return 0;
	}
	rc = grow((void **)&s->asks, s->count, &s->room, sizeof(*s->asks), SUGGEST_ASKS_MAX);
	if (rc == 0 && json_object_setn_new_nocheck(
	                       s->index, key, n, json_integer((json_int_t)s->count)) != 0)
		rc = -ENOMEM;
	if (rc != 0) {
		drop(ask);
		return rc;
	}
	*at = s->count;
	ask->count = 1;
	s->asks[s->count++] = *ask;
	return 0;
}

/* Leaves out names that a search list made out of an allowed name, because the sandbox did not mean
 * them, and inbound connections, because the sandbox did not ask for them. */
static bool is_denial(const json_t *event)
{
	int64_t class = audit_number(event, "class_uid"), action = audit_number(event, "action_id");

	return audit_number(event, "connection_info.direction_id") != DIRECTION_INBOUND &&
	       (class == CLASS_HTTP || class == CLASS_DNS || class == CLASS_NETWORK) &&
	       (action == ACTION_DENIED || action == ACTION_OBSERVED) &&
	       !slice_equals(audit_text(event, "status_code"), SLICE("search-list"));
}

int suggest_read(struct suggest *s, const json_t *event, bool take)
{
	struct suggest_ask ask = {0};
	struct audit_row row;
	size_t at;
	int rc;

	if (audit_number(event, "class_uid") == CLASS_FINDING)
		return read_finding(s, event);
	if (!take || !is_denial(event) || !audit_row_read(event, &row))
		return 0;
	rc = read_ask(&ask, event, &row);
	if (rc != 0) {
		drop(&ask);
		return rc;
	}
	rc = grow((void **)&s->denials, s->denial_count, &s->denial_room, sizeof(*s->denials),
	        SUGGEST_DENIALS_MAX);
	if (rc != 0) {
		drop(&ask);
		return rc;
	}
	slice_escape(audit_text(event, "metadata.uid"), s->denials[s->denial_count].event,
	        SUGGEST_ID_SIZE);
	rc = add(s, &ask, &at);
	if (rc == 0)
		s->denials[s->denial_count++].ask = at;
	return rc;
}
