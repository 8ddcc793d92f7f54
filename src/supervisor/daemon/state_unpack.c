/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the content of a state file, as state_pack.c and earlier versions have written it. It is
 * read strictly: an unknown key, a missing one or an invalid value makes the whole invalid. Text is
 * borrowed from the document until take() copies it into the record.
 */
#include <stdlib.h>

#include "supervisor/daemon/state_json.h"
#include "supervisor/daemon/state_value.h"

static bool kind_of(const char *text, enum attach_kind *out)
{
	for (size_t i = 0; i < ATTACH_KIND_COUNT; i++) {
		if (strcmp(text, attach_kind_name((enum attach_kind)i)) != 0)
			continue;
		*out = (enum attach_kind)i;
		return true;
	}
	return false;
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

/* Files of earlier versions have no groups. */
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
	r->groups = calloc(count + 1, sizeof(*r->groups));
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

/* The gate. */

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

/* Files of earlier versions have no bounds, or not that of datagrams: the fence is set again. */
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

/* Earlier daemons also wrote the gate's "paused": always false, except in the very first files. A
 * file with true is refused: its gate was closed, and this version would not keep it so. */
static bool unpack_gate(json_t *object, bool socket, struct gate *g)
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
	g->kind = socket ? GATE_SOCKET : divert ? GATE_DIVERT : GATE_VETH;
	g->tcp_port = (uint16_t)port;
	return !paused && port >= (socket ? 0 : 1) && port <= UINT16_MAX &&
	       state_text_of(device, g->device, sizeof(g->device)) &&
	       state_text_of(host_link, g->host_link, sizeof(g->host_link)) &&
	       state_ip_of(gate4, 4, &g->gate4) && state_ip_of(gate6, 6, &g->gate6) &&
	       state_ip_of(sandbox4, 4, &g->sandbox4) && state_ip_of(sandbox6, 6, &g->sandbox6) &&
	       bits_of(bits4, 32, &g->bits4) && bits_of(bits6, 128, &g->bits6) &&
	       state_prefix_of(source4, 4, &g->source4) &&
	       state_prefix_of(source6, 6, &g->source6) && state_hex_of(mac, g->mac, 6) &&
	       state_hex_of(sandbox_mac, g->sandbox_mac, 6) && ports_of(ports, g) &&
	       bounds_of(bounds, g);
}

/* The whole. */

static bool container_of_json(json_t *object, struct attach_container *out)
{
	const char *engine, *id, *name;

	return json_unpack(object, "{s:s, s:s, s:s !}", "engine", &engine, "id", &id, "name",
	               &name) == 0 &&
	       state_text_of(engine, out->engine, sizeof(out->engine)) &&
	       state_text_of(id, out->id, sizeof(out->id)) &&
	       state_text_of(name, out->name, sizeof(out->name));
}

/* Filled in by json_unpack(): borrowed from the document. */
struct fields {
	const char *name, *id, *kind, *interface, *netns, *start_time, *policy, *generation, *seed;
	const char *reason, *dropped, *root;
	int version, pid, observe, paused, attaching, prepared, claimed;
	json_int_t uid, gid, created, expires;
	json_t *container, *labels, *vars, *gate, *groups, *listen, *revoked, *session;
};

static bool unpack(json_t *root, struct fields *f, json_error_t *why)
{
	f->groups = NULL;
	f->dropped = f->root = NULL;
	f->listen = f->revoked = f->session = NULL;
	return json_unpack_ex(root, why, 0,
	               "{s:i, s:s, s:s, s:s, s:s, s:s, s:i, s:s, s:o, s:s, s:b, s:o, s:o, s:I, "
	               "s:I, s:I, s:I, s:s, s:s, s:b, s:s, s:o, s?o, s?b, s?s, "
	               "s?o, s?b, s?b, s?s, s?o, s?o !}",
	               "vethguard", &f->version, "name", &f->name, "id", &f->id, "kind", &f->kind,
	               "interface", &f->interface, "netns", &f->netns, "pid", &f->pid,
	               "pid_start_time", &f->start_time, "container", &f->container, "policy",
	               &f->policy, "observe", &f->observe, "labels", &f->labels, "vars", &f->vars,
	               "uid", &f->uid, "gid", &f->gid, "created_ms", &f->created, "expires_ms",
	               &f->expires, "generation", &f->generation, "seed", &f->seed, "paused",
	               &f->paused, "reason", &f->reason, "gate", &f->gate, "groups", &f->groups,
	               "attaching", &f->attaching, "dropped", &f->dropped, "listen", &f->listen,
	               "prepared", &f->prepared, "claimed", &f->claimed, "ca_root", &f->root,
	               "revoked", &f->revoked, "session", &f->session) == 0;
}

static bool listen_of(json_t *object, struct listen_socket *s)
{
	const char *path, *device, *inode, *born;
	json_int_t uid, gid;
	uint64_t numbers[2], born_ns;
	int mode;

	if (json_unpack(object, "{s:s, s:i, s:I, s:I, s:s, s:s, s:s !}", "path", &path, "mode",
	            &mode, "uid", &uid, "gid", &gid, "device", &device, "inode", &inode, "born",
	            &born) != 0 ||
	        mode < 0 || mode > LISTEN_MODE_MAX || uid < 0 || uid >= UINT32_MAX || gid < 0 ||
	        gid >= UINT32_MAX || !state_u64_of(device, &numbers[0]) ||
	        !state_u64_of(inode, &numbers[1]) || !state_u64_of(born, &born_ns))
		return false;
	*s = (struct listen_socket){.mode = (mode_t)mode,
	        .uid = (uid_t)uid,
	        .gid = (gid_t)gid,
	        .device = (dev_t)numbers[0],
	        .inode = (ino_t)numbers[1],
	        .born_ns = born_ns};
	return !listen_socket_name(s, path);
}

static bool signed_of(json_t *object, struct session_token *s)
{
	json_int_t lifetime;
	const char *id;

	s->is_signed = object;
	if (!object)
		return true;
	if (json_unpack(object, "{s:s, s:I !}", "id", &id, "lifetime", &lifetime) != 0 ||
	        lifetime < 0 || lifetime > ATTACH_TTL_MAX_S)
		return false;
	s->lifetime_s = (uint32_t)lifetime;
	return state_hex_of(id, s->id, sizeof(s->id));
}

static bool session_of(json_t *object, struct session_token *s)
{
	const char *token;
	json_t *from, *network, *by_signed = NULL;
	int by_address = 0, callback = 0;
	size_t i;

	if (json_unpack(object, "{s:s, s:o, s?o, s?b, s?b !}", "token", &token, "from", &from,
	            "signed", &by_signed, "by_address", &by_address, "callback", &callback) != 0 ||
	        !signed_of(by_signed, s) || !state_hex_of(token, s->hash, sizeof(s->hash)) ||
	        !json_is_array(from) || json_array_size(from) > MESSAGE_FROM_MAX)
		return false;
	json_array_foreach(from, i, network)
	{
		const char *text = json_string_value(network);

		if (!text || !ip_prefix_parse(slice_from_string(text), &s->from[s->from_count++]))
			return false;
	}
	s->by_address = by_address;
	s->callback = callback;
	if (callback && (by_address || by_signed))
		return false;
	return !by_address || (s->from_count && !by_signed);
}

static bool take_pairs(const struct fields *f, struct attach_record *r)
{
	const struct attach_pair *culprit;

	return pairs_of(f->labels, ATTACH_LABELS_MAX, &r->labels) &&
	       !attach_labels_objection(&r->labels, &culprit) &&
	       pairs_of(f->vars, ATTACH_VARS_MAX, &r->vars) &&
	       !attach_vars_objection(&r->vars, &culprit);
}

/* Which sandbox it is, and to what it is attached. Returns NULL, or which value is invalid. */
static const char *take_target(const struct fields *f, struct attach_record *r)
{
	struct slice name = slice_from_string(f->name);

	if (f->version != STATE_VERSION)
		return "vethguard";
	if (!message_name_is_plain(name) || !state_text_of(f->name, r->name, sizeof(r->name)))
		return "name";
	if (!state_u64_of(f->id, &r->id) || r->id == 0)
		return "id";
	if (!kind_of(f->kind, &r->kind))
		return "kind";
	if (!state_text_of(f->interface, r->interface, sizeof(r->interface)))
		return "interface";
	if ((r->kind == ATTACH_LISTEN) != !!f->listen ||
	        (f->listen && !listen_of(f->listen, &r->listen)))
		return "listen";
	if ((r->kind == ATTACH_SESSION) != !!f->session ||
	        (f->session && !session_of(f->session, &r->session)))
		return "session";
	if (f->pid < 0 || !state_u64_of(f->start_time, &r->pid_start_time))
		return "pid";
	if (!container_of_json(f->container, &r->container))
		return "container";
	return NULL;
}

/* Returns NULL, or which value is invalid. */
static const char *take(const struct fields *f, struct attach_record *r)
{
	const char *wrong = take_target(f, r);

	if (wrong)
		return wrong;
	if (f->policy[0] != (f->prepared ? '\0' : '/') || strlen(f->policy) > MESSAGE_PATH_MAX)
		return "policy";
	if (strlen(f->netns) > MESSAGE_PATH_MAX || (f->netns[0] && f->netns[0] != '/'))
		return "netns";
	if (f->uid < 0 || f->uid >= UINT32_MAX || f->gid < 0 || f->gid >= UINT32_MAX)
		return "uid";
	if (!groups_of(f->groups, r))
		return "groups";
	if (f->created < 0 || f->expires < 0)
		return "expires_ms";
	if (!state_u64_of(f->generation, &r->generation) || r->generation == 0)
		return "generation";
	if (!state_hex_of(f->seed, r->seed, sizeof(r->seed)))
		return "seed";
	r->root_known = f->root;
	if (f->root && !state_hex_of(f->root, r->root, sizeof(r->root)))
		return "ca_root";
	if (!state_text_of(f->reason, r->reason, sizeof(r->reason)))
		return "reason";
	r->dropped_known = f->dropped;
	if (f->dropped && !state_u64_of(f->dropped, &r->dropped))
		return "dropped";
	if (!take_pairs(f, r))
		return "labels or vars";
	if (f->revoked && !pairs_of(f->revoked, ATTACH_VARS_MAX, &r->revoked))
		return "revoked";
	r->pid = f->pid;
	r->observe = f->observe;
	r->uid = (uid_t)f->uid;
	r->gid = (gid_t)f->gid;
	r->created_ms = f->created;
	r->expires_ms = f->expires;
	r->paused = f->paused;
	r->undoing = f->attaching;
	r->prepared = f->prepared;
	r->claimed = f->claimed;
	r->netns = strdup(f->netns);
	r->policy = strdup(f->policy);
	return r->netns && r->policy ? NULL : "memory";
}

const char *state_unpack(
        json_t *root, struct attach_record *r, struct gate *gate, json_error_t *why)
{
	struct fields f = {.attaching = 0}; /* an optional key */
	const char *wrong;

	if (!unpack(root, &f, why))
		return why->text;
	wrong = take(&f, r);
	if (!wrong &&
	        !unpack_gate(f.gate, r->kind == ATTACH_LISTEN || r->kind == ATTACH_SESSION, gate))
		wrong = "gate";
	return wrong;
}
