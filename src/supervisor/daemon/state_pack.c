/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the content of a state file: what was asked for and what was made; no secrets. 64-bit
 * numbers and byte strings are hexadecimal text, because JSON numbers do not hold them reliably.
 * One description of the fields cannot serve both json_pack() and json_unpack(), so there are two,
 * here and in state_unpack.c, and a test that one reads what the other writes.
 *
 * A value for which there is no memory is NULL, and json_pack() then returns NULL for the whole.
 */
#include <stdio.h>

#include "supervisor/daemon/state_json.h"

#define HEX_BYTES_MAX MESSAGE_FINGERPRINT_BYTES
#define PREFIX_TEXT_MAX (IP_TEXT_MAX + 4)

/* Values. */

static const char *hex(const uint8_t *p, size_t n, char out[2 * HEX_BYTES_MAX + 1])
{
	for (size_t i = 0; i < n; i++)
		snprintf(out + 2 * i, 3, "%02x", p[i]);
	return out;
}

static json_t *json_hex(const uint8_t *p, size_t n)
{
	char text[2 * HEX_BYTES_MAX + 1];

	return json_string(hex(p, n, text));
}

static json_t *json_u64(uint64_t v)
{
	char text[17];

	snprintf(text, sizeof(text), "%016llx", (unsigned long long)v);
	return json_string(text);
}

static json_t *json_ip(const struct ip *ip)
{
	char text[IP_TEXT_MAX];

	return json_string(ip->family ? ip_format(ip, text) : "");
}

static json_t *json_prefix(const struct ip_prefix *prefix)
{
	char text[PREFIX_TEXT_MAX], ip[IP_TEXT_MAX];

	if (!prefix->base.family)
		return json_string("");
	snprintf(text, sizeof(text), "%s/%u", ip_format(&prefix->base, ip), prefix->bits);
	return json_string(text);
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

/* An array of group ids; NULL: no memory. */
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

static json_t *pack_listen(const struct listen_socket *s)
{
	return json_pack("{s:s, s:i, s:I, s:I, s:o, s:o, s:o}", "path", s->path, "mode",
	        (int)s->mode, "uid", (json_int_t)s->uid, "gid", (json_int_t)s->gid, "device",
	        json_u64(s->device), "inode", json_u64(s->inode), "born", json_u64(s->born_ns));
}

/* Packs a session. The state has no secret: only the token's hash is kept. */
static json_t *pack_session(const struct session_token *s)
{
	json_t *from = json_array(), *object;

	for (size_t i = 0; from && i < s->from_count; i++)
		if (json_array_append_new(from, json_prefix(&s->from[i])) != 0) {
			json_decref(from);
			return NULL;
		}
	object = json_pack("{s:o, s:o}", "token", json_hex(s->hash, sizeof(s->hash)), "from", from);
	if (object &&
	        ((s->by_address && json_object_set_new(object, "by_address", json_true()) != 0) ||
	                (s->callback &&
	                        json_object_set_new(object, "callback", json_true()) != 0))) {
		json_decref(object);
		return NULL;
	}
	if (object && s->is_signed &&
	        json_object_set_new(object, "signed",
	                json_pack("{s:o, s:I}", "id", json_hex(s->id, sizeof(s->id)), "lifetime",
	                        (json_int_t)s->lifetime_s)) != 0) {
		json_decref(object);
		return NULL;
	}
	return object;
}

/* The whole. */

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
	        attach_kind_name(r->kind), "interface", r->interface, "netns",
	        r->netns ? r->netns : "", "pid", (int)r->pid, "pid_start_time",
	        json_u64(r->pid_start_time), "container", container, "policy",
	        r->policy ? r->policy : "", "observe", r->observe, "labels", json_pairs(&r->labels),
	        "vars", json_pairs(&r->vars), "uid", (json_int_t)r->uid, "gid", (json_int_t)r->gid,
	        "created_ms", (json_int_t)r->created_ms, "expires_ms", (json_int_t)r->expires_ms,
	        "generation", json_u64(r->generation), "seed", json_hex(r->seed, sizeof(r->seed)),
	        "paused", r->paused, "reason", r->reason, "gate", pack_gate(gate));
}

/* Takes ownership of value, which may be NULL: no memory. */
static bool add(json_t *root, const char *key, json_t *value)
{
	return json_object_set_new(root, key, value) == 0;
}

json_t *state_pack(const struct attach_record *r, const struct gate *gate)
{
	json_t *root = pack(r, gate);

	if (root && (!r->prepared || add(root, "prepared", json_true())) &&
	        (!r->claimed || add(root, "claimed", json_true())) &&
	        (!r->revoked.count || add(root, "revoked", json_pairs(&r->revoked))) &&
	        (!r->undoing || add(root, "attaching", json_true())) &&
	        (!r->dropped_known || add(root, "dropped", json_u64(r->dropped))) &&
	        (!r->root_known || add(root, "ca_root", json_hex(r->root, sizeof(r->root)))) &&
	        (r->kind != ATTACH_LISTEN || add(root, "listen", pack_listen(&r->listen))) &&
	        (r->kind != ATTACH_SESSION || add(root, "session", pack_session(&r->session))) &&
	        (!r->asked || add(root, "groups", json_groups(r))))
		return root;
	json_decref(root);
	return NULL;
}
