/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A state file holds what was asked for, what was made, and nothing secret. 64-bit numbers and byte
 * strings are hex text: JSON's numbers are not trusted with them. One description of the fields
 * would have to serve json_pack() and json_unpack() with their different needs, so there are two,
 * and a test that what one writes the other reads.
 */
#include <stdio.h>
#include <stdlib.h>

#include "supervisor/daemon/state_json.h"

#define HEX_BYTES_MAX 16
#define PREFIX_TEXT_MAX (IP_TEXT_MAX + 4)

static const char *const kind_names[] = {
        [ATTACH_INTERFACE] = "interface", [ATTACH_NETNS] = "netns", [ATTACH_PID] = "pid"};
_Static_assert(sizeof kind_names / sizeof kind_names[0] == ATTACH_KIND_COUNT, "a name per kind");

const char *attach_kind_name(enum attach_kind kind)
{
	return kind_names[kind];
}

/* Values to text and back. */

static const char *hex(const uint8_t *p, size_t n, char out[2 * HEX_BYTES_MAX + 1])
{
	for (size_t i = 0; i < n; i++)
		snprintf(out + 2 * i, 3, "%02x", p[i]);
	return out;
}

static bool unhex(const char *text, uint8_t *out, size_t n)
{
	static const char digits[] = "0123456789abcdef";

	if (strlen(text) != 2 * n)
		return false;
	for (size_t i = 0; i < n; i++) {
		const char *high = strchr(digits, text[2 * i]);
		const char *low = strchr(digits, text[2 * i + 1]);

		if (!high || !low)
			return false;
		out[i] = (uint8_t)((high - digits) << 4 | (low - digits));
	}
	return true;
}

static json_t *json_hex(const uint8_t *p, size_t n)
{
	char text[2 * HEX_BYTES_MAX + 1];

	return json_string(hex(p, n, text));
}

static json_t *json_u64(uint64_t v)
{
	char text[17];

	snprintf(text, sizeof text, "%016llx", (unsigned long long)v);
	return json_string(text);
}

static bool u64_of(const char *text, uint64_t *out)
{
	uint8_t bytes[8];

	if (!unhex(text, bytes, sizeof bytes))
		return false;
	*out = 0;
	for (size_t i = 0; i < sizeof bytes; i++)
		*out = *out << 8 | bytes[i];
	return true;
}

static json_t *json_ip(const struct ip *ip)
{
	char text[IP_TEXT_MAX];

	return json_string(ip->family ? ip_format(ip, text) : "");
}

static bool ip_of(const char *text, uint8_t family, struct ip *out)
{
	*out = (struct ip){0};
	return !text[0] || (ip_parse(slice_from_string(text), out) && out->family == family);
}

static json_t *json_prefix(const struct ip_prefix *prefix)
{
	char text[PREFIX_TEXT_MAX], ip[IP_TEXT_MAX];

	if (!prefix->base.family)
		return json_string("");
	snprintf(text, sizeof text, "%s/%u", ip_format(&prefix->base, ip), prefix->bits);
	return json_string(text);
}

static bool prefix_of(const char *text, uint8_t family, struct ip_prefix *out)
{
	*out = (struct ip_prefix){0};
	return !text[0] ||
	       (ip_prefix_parse(slice_from_string(text), out) && out->base.family == family);
}

static bool copy_text(const char *text, char *out, size_t size)
{
	size_t n = strlen(text);

	if (n >= size)
		return false;
	memcpy(out, text, n + 1);
	return true;
}

static json_t *json_pairs(const struct attach_pairs *pairs)
{
	json_t *object = json_object();

	for (size_t i = 0; object && i < pairs->count; i++)
		if (json_object_set_new(
		            object, pairs->items[i].key, json_string(pairs->items[i].value)) != 0) {
			json_decref(object);
			return NULL;
		}
	return object;
}

static bool pairs_of(json_t *object, size_t max, struct attach_pairs *out)
{
	struct attach_pair items[ATTACH_VARS_MAX];
	const char *key;
	json_t *value;
	size_t n = 0;

	if (!json_is_object(object) || json_object_size(object) > max)
		return false;
	json_object_foreach(object, key, value)
	{
		if (!json_is_string(value))
			return false;
		items[n++] = (struct attach_pair){key, json_string_value(value)};
	}
	const struct attach_pairs borrowed = {n, items};
	return attach_pairs_copy(out, &borrowed) == 0;
}
_Static_assert(ATTACH_LABELS_MAX <= ATTACH_VARS_MAX, "the larger bound sizes the array");

/* Numbers of groups; NULL: no memory. */
static json_t *json_groups(const struct attach_record *r)
{
	json_t *groups = json_array();

	for (size_t i = 0; groups && i < r->group_count; i++)
		if (json_array_append_new(groups, json_integer((json_int_t)r->groups[i])) != 0) {
			json_decref(groups);
			return NULL;
		}
	return groups;
}

/* Files of versions before these were written down have none. */
static bool groups_of(json_t *groups, struct attach_record *r)
{
	size_t count = json_array_size(groups);
	json_t *group;
	size_t i;

	if (!groups)
		return true;
	if (!json_is_array(groups) || count > IDENTITY_GROUPS_MAX)
		return false;
	r->asked = true;
	r->groups = calloc(count + 1, sizeof *r->groups);
	if (!r->groups)
		return false;
	json_array_foreach(groups, i, group)
	{
		json_int_t v = json_integer_value(group);

		if (!json_is_integer(group) || v < 0 || v >= UINT32_MAX)
			return false;
		r->groups[r->group_count++] = (gid_t)v;
	}
	return true;
}

/* Writing. */

static json_t *pack_gate(const struct gate *g)
{
	json_t *ports = json_array();

	for (size_t i = 0; ports && i < g->udp_port_count; i++)
		if (json_array_append_new(ports, json_integer(g->udp_ports[i])) != 0) {
			json_decref(ports);
			return NULL;
		}
	return json_pack("{s:b, s:s, s:s, s:o, s:o, s:o, s:o, s:i, s:i, s:o, s:o, s:o, s:o, s:i, "
	                 "s:o, s:[I, I, I, I]}",
	        "divert", g->kind == GATE_DIVERT, "device", g->device, "host_link", g->host_link,
	        "gate4", json_ip(&g->gate4), "gate6", json_ip(&g->gate6), "sandbox4",
	        json_ip(&g->sandbox4), "sandbox6", json_ip(&g->sandbox6), "bits4", g->bits4,
	        "bits6", g->bits6, "source4", json_prefix(&g->source4), "source6",
	        json_prefix(&g->source6), "mac", json_hex(g->mac, 6), "sandbox_mac",
	        json_hex(g->sandbox_mac, 6), "tcp_port", g->tcp_port, "udp_ports", ports, "bounds",
	        (json_int_t)g->bounds.connections_per_s, (json_int_t)g->bounds.queries_per_s,
	        (json_int_t)g->bounds.copies_per_s, (json_int_t)g->bounds.datagrams_per_s);
}

static json_t *pack(const struct attach_record *r, const struct gate *gate)
{
	json_t *container = json_pack("{s:s, s:s, s:s}", "engine", r->container.engine, "id",
	        r->container.id, "name", r->container.name);

	return json_pack("{s:i, s:s, s:o, s:s, s:s, s:s, s:i, s:o, s:o, s:s, s:b, s:o, s:o, s:I, "
	                 "s:I, s:I, s:I, s:o, s:o, s:b, s:s, s:o}",
	        "vethguard", STATE_VERSION, "name", r->name, "id", json_u64(r->id), "kind",
	        kind_names[r->kind], "interface", r->interface, "netns", r->netns ? r->netns : "",
	        "pid", (int)r->pid, "pid_start_time", json_u64(r->pid_start_time), "container",
	        container, "policy", r->policy ? r->policy : "", "observe", r->observe, "labels",
	        json_pairs(&r->labels), "vars", json_pairs(&r->vars), "uid", (json_int_t)r->uid,
	        "gid", (json_int_t)r->gid, "created_ms", (json_int_t)r->created_ms, "expires_ms",
	        (json_int_t)r->expires_ms, "generation", json_u64(r->generation), "seed",
	        json_hex(r->seed, sizeof r->seed), "paused", r->paused, "reason", r->reason, "gate",
	        pack_gate(gate));
}

/* Takes value, which may be NULL: no memory. */
static bool add(json_t *root, const char *key, json_t *value)
{
	return json_object_set_new(root, key, value) == 0;
}

json_t *state_pack(const struct attach_record *r, const struct gate *gate)
{
	json_t *root = pack(r, gate);

	if (root && (!r->undoing || add(root, "attaching", json_true())) &&
	        (!r->asked || add(root, "groups", json_groups(r))))
		return root;
	json_decref(root);
	return NULL;
}

/* Reading. */

static bool ports_of(json_t *ports, struct gate *g)
{
	json_t *port;
	size_t i;

	if (!json_is_array(ports) || json_array_size(ports) > FENCE_UDP_PORTS_MAX)
		return false;
	json_array_foreach(ports, i, port)
	{
		json_int_t v = json_integer_value(port);

		if (!json_is_integer(port) || v < 1 || v > UINT16_MAX)
			return false;
		g->udp_ports[g->udp_port_count++] = (uint16_t)v;
	}
	return true;
}

#define BOUNDS_WITHOUT_DATAGRAMS 3

/* A file of before there were bounds, or the one of datagrams, has none: its fence is set anew. */
static bool bounds_of(json_t *bounds, struct gate *g)
{
	uint32_t *const out[] = {&g->bounds.connections_per_s, &g->bounds.queries_per_s,
	        &g->bounds.copies_per_s, &g->bounds.datagrams_per_s};
	size_t count = json_array_size(bounds);

	if (!bounds)
		return true;
	if (count != BOUNDS_WITHOUT_DATAGRAMS && count != sizeof(out) / sizeof(out[0]))
		return false;
	for (size_t i = 0; i < count; i++) {
		const json_t *bound = json_array_get(bounds, i);
		json_int_t v = json_integer_value(bound);

		if (!json_is_integer(bound) || v < 0 || v > FENCE_PER_S_MAX)
			return false;
		*out[i] = (uint32_t)v;
	}
	return true;
}

static bool bits_of(int v, int max, uint8_t *out)
{
	*out = (uint8_t)v;
	return v >= 0 && v <= max;
}

/* Earlier daemons wrote "paused" of the gate, too: false, but in the very first files. One with
 * true is refused: its gate was closed, and nothing here would keep it so. */
static bool unpack_gate(json_t *object, struct gate *g)
{
	const char *device, *host_link, *gate4, *gate6, *sandbox4, *sandbox6, *source4, *source6;
	const char *mac, *sandbox_mac;
	int divert, paused = false, bits4, bits6, port;
	json_t *ports, *bounds = NULL;

	if (json_unpack(object,
	            "{s:b, s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:s, s:s, s:s, s:s, s:i, s:o, "
	            "s?o, s?b !}",
	            "divert", &divert, "device", &device, "host_link", &host_link, "gate4", &gate4,
	            "gate6", &gate6, "sandbox4", &sandbox4, "sandbox6", &sandbox6, "bits4", &bits4,
	            "bits6", &bits6, "source4", &source4, "source6", &source6, "mac", &mac,
	            "sandbox_mac", &sandbox_mac, "tcp_port", &port, "udp_ports", &ports, "bounds",
	            &bounds, "paused", &paused) != 0)
		return false;
	g->kind = divert ? GATE_DIVERT : GATE_VETH;
	g->tcp_port = (uint16_t)port;
	return !paused && port >= 1 && port <= UINT16_MAX &&
	       copy_text(device, g->device, sizeof g->device) &&
	       copy_text(host_link, g->host_link, sizeof g->host_link) &&
	       ip_of(gate4, 4, &g->gate4) && ip_of(gate6, 6, &g->gate6) &&
	       ip_of(sandbox4, 4, &g->sandbox4) && ip_of(sandbox6, 6, &g->sandbox6) &&
	       bits_of(bits4, 32, &g->bits4) && bits_of(bits6, 128, &g->bits6) &&
	       prefix_of(source4, 4, &g->source4) && prefix_of(source6, 6, &g->source6) &&
	       unhex(mac, g->mac, 6) && unhex(sandbox_mac, g->sandbox_mac, 6) &&
	       ports_of(ports, g) && bounds_of(bounds, g);
}

static bool kind_of(const char *text, enum attach_kind *out)
{
	for (size_t i = 0; i < ATTACH_KIND_COUNT; i++) {
		if (strcmp(text, kind_names[i]) != 0)
			continue;
		*out = (enum attach_kind)i;
		return true;
	}
	return false;
}

static bool container_of_json(json_t *object, struct attach_container *out)
{
	const char *engine, *id, *name;

	return json_unpack(object, "{s:s, s:s, s:s !}", "engine", &engine, "id", &id, "name",
	               &name) == 0 &&
	       copy_text(engine, out->engine, sizeof out->engine) &&
	       copy_text(id, out->id, sizeof out->id) &&
	       copy_text(name, out->name, sizeof out->name);
}

/* What json_unpack() gives: borrowed from the document. */
struct fields {
	const char *name, *id, *kind, *interface, *netns, *start_time, *policy, *generation, *seed;
	const char *reason;
	int version, pid, observe, paused, attaching;
	json_int_t uid, gid, created, expires;
	json_t *container, *labels, *vars, *gate, *groups;
};

static bool unpack(json_t *root, struct fields *f, json_error_t *why)
{
	f->groups = NULL;
	return json_unpack_ex(root, why, 0,
	               "{s:i, s:s, s:s, s:s, s:s, s:s, s:i, s:s, s:o, s:s, s:b, s:o, s:o, s:I, "
	               "s:I, s:I, s:I, s:s, s:s, s:b, s:s, s:o, s?o, s?b !}",
	               "vethguard", &f->version, "name", &f->name, "id", &f->id, "kind", &f->kind,
	               "interface", &f->interface, "netns", &f->netns, "pid", &f->pid,
	               "pid_start_time", &f->start_time, "container", &f->container, "policy",
	               &f->policy, "observe", &f->observe, "labels", &f->labels, "vars", &f->vars,
	               "uid", &f->uid, "gid", &f->gid, "created_ms", &f->created, "expires_ms",
	               &f->expires, "generation", &f->generation, "seed", &f->seed, "paused",
	               &f->paused, "reason", &f->reason, "gate", &f->gate, "groups", &f->groups,
	               "attaching", &f->attaching) == 0;
}

static bool take_pairs(const struct fields *f, struct attach_record *r)
{
	const struct attach_pair *culprit;

	return pairs_of(f->labels, ATTACH_LABELS_MAX, &r->labels) &&
	       !attach_labels_objection(&r->labels, &culprit) &&
	       pairs_of(f->vars, ATTACH_VARS_MAX, &r->vars) &&
	       !attach_vars_objection(&r->vars, &culprit);
}

/* NULL, or which value cannot be. */
static const char *take(const struct fields *f, struct attach_record *r)
{
	struct slice name = slice_from_string(f->name);

	if (f->version != STATE_VERSION)
		return "vethguard";
	if (!message_name_is_plain(name) || !copy_text(f->name, r->name, sizeof r->name))
		return "name";
	if (!u64_of(f->id, &r->id) || r->id == 0)
		return "id";
	if (!kind_of(f->kind, &r->kind))
		return "kind";
	if (!copy_text(f->interface, r->interface, sizeof r->interface))
		return "interface";
	if (f->pid < 0 || !u64_of(f->start_time, &r->pid_start_time))
		return "pid";
	if (!container_of_json(f->container, &r->container))
		return "container";
	if (f->policy[0] != '/' || strlen(f->policy) > MESSAGE_PATH_MAX)
		return "policy";
	if (strlen(f->netns) > MESSAGE_PATH_MAX || (f->netns[0] && f->netns[0] != '/'))
		return "netns";
	if (f->uid < 0 || f->uid >= UINT32_MAX || f->gid < 0 || f->gid >= UINT32_MAX)
		return "uid";
	if (!groups_of(f->groups, r))
		return "groups";
	if (f->created < 0 || f->expires < 0)
		return "expires_ms";
	if (!u64_of(f->generation, &r->generation) || r->generation == 0)
		return "generation";
	if (!unhex(f->seed, r->seed, sizeof r->seed))
		return "seed";
	if (!copy_text(f->reason, r->reason, sizeof r->reason))
		return "reason";
	if (!take_pairs(f, r))
		return "labels or vars";
	r->pid = f->pid;
	r->observe = f->observe;
	r->uid = (uid_t)f->uid;
	r->gid = (gid_t)f->gid;
	r->created_ms = f->created;
	r->expires_ms = f->expires;
	r->paused = f->paused;
	r->undoing = f->attaching;
	r->netns = strdup(f->netns);
	r->policy = strdup(f->policy);
	return r->netns && r->policy ? NULL : "memory";
}

const char *state_unpack(
        json_t *root, struct attach_record *r, struct gate *gate, json_error_t *why)
{
	struct fields f = {.attaching = 0}; /* a key that need not be there */
	const char *wrong;

	if (!unpack(root, &f, why))
		return why->text;
	wrong = take(&f, r);
	if (!wrong && !unpack_gate(f.gate, gate))
		wrong = "gate";
	return wrong;
}
