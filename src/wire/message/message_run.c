/* SPDX-License-Identifier: Apache-2.0 */
/* The messages between `vethguard run` and its supervisor. */
#include "wire/message/message_codec.h"

bool message_name_is_plain(struct slice name)
{
	for (size_t i = 0; i < name.n; i++) {
		char c = name.p[i];
		bool letter =
		        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');

		if (!letter && (i == 0 || (c != '.' && c != '_' && c != '-')))
			return false;
	}
	return name.n > 0 && name.n <= MESSAGE_NAME_MAX &&
	       !slice_equals(name, SLICE(MESSAGE_NAME_DAEMON)) &&
	       !slice_equals(name, SLICE(MESSAGE_NAME_LEFT));
}

static void run_start_fields(struct codec *c, struct message_run_start *m)
{
	m->name = codec_string(c, m->name, 0, MESSAGE_NAME_MAX);
	m->policy_path = codec_string(c, m->policy_path, 0, MESSAGE_PATH_MAX);
	m->config_path = codec_string(c, m->config_path, 0, MESSAGE_PATH_MAX);
	m->audit_path = codec_string(c, m->audit_path, 0, MESSAGE_PATH_MAX);
	m->directory = codec_string(c, m->directory, 0, MESSAGE_PATH_MAX);
	m->user_id = codec_u32(c, m->user_id);
	m->group_id = codec_u32(c, m->group_id);
	m->observe = codec_bool(c, m->observe);
	m->rootless = codec_bool(c, m->rootless);
	m->shared_dns_port = codec_u16(c, m->shared_dns_port);
	m->shared_udp_count = codec_upto(c, m->shared_udp_count, MESSAGE_SHARED_UDP_MAX);
	for (size_t i = 0; i < m->shared_udp_count; i++)
		m->shared_udp_ports[i] = codec_u16(c, m->shared_udp_ports[i]);
	m->log_level = codec_u8(c, m->log_level);
	m->variable_count = codec_upto(c, m->variable_count, POLICY_VARIABLES_MAX);
	for (size_t i = 0; i < m->variable_count; i++) {
		struct policy_variable *v = &m->variables[i];

		v->name = codec_string(c, v->name, 1, POLICY_VARIABLE_NAME_MAX);
		v->value = codec_string(c, v->value, 1, POLICY_VARIABLE_VALUE_MAX);
	}
}
CODEC_PAIR(run_start)

static void names_fields(struct codec *c, struct message_names *m)
{
	m->count = codec_upto(c, m->count, MESSAGE_ENV_MAX);
	for (size_t i = 0; i < m->count; i++)
		m->names[i] = codec_variable(c, m->names[i]);
}
CODEC_PAIR(names)

static void status_fields(struct codec *c, struct message_status *m)
{
	m->status = (int32_t)codec_u32(c, (uint32_t)m->status);
}
CODEC_PAIR(status)

static void run_ready_fields(struct codec *c, struct message_run_ready *m)
{
	m->sandbox = codec_string(c, m->sandbox, 1, MESSAGE_NAME_MAX);
	m->audit_path = codec_string(c, m->audit_path, 0, MESSAGE_PATH_MAX);
	m->gate4 = codec_ip(c, m->gate4);
	m->gate6 = codec_ip(c, m->gate6);
	m->proxy_port = codec_u16(c, m->proxy_port);
	m->root_pem = codec_string(c, m->root_pem, 1, MESSAGE_PEM_MAX);
	m->env_count = codec_upto(c, m->env_count, MESSAGE_ENV_MAX);
	for (size_t i = 0; i < m->env_count; i++) {
		m->env[i].name = codec_variable(c, m->env[i].name);
		m->env[i].value = codec_string(c, m->env[i].value, 0, MESSAGE_VARIABLE_MAX);
	}
	m->file_count = codec_upto(c, m->file_count, MESSAGE_ENV_MAX);
	for (size_t i = 0; i < m->file_count; i++)
		m->files[i] = codec_string(c, m->files[i], 1, MESSAGE_PATH_MAX);
	m->watched.count = codec_upto(c, m->watched.count, MESSAGE_WATCHED_MAX);
	for (size_t i = 0; i < m->watched.count; i++)
		m->watched.paths[i] = codec_string(c, m->watched.paths[i], 1, MESSAGE_PATH_MAX);
}
CODEC_PAIR(run_ready)

static void role_fields(struct codec *c, struct message_role *m)
{
	m->left = codec_u32(c, m->left);
	m->pid = codec_u32(c, m->pid);
	m->name = codec_string(c, m->name, 1, MESSAGE_ROLE_NAME_MAX);
	m->text = codec_string(c, m->text, 0, MESSAGE_TEXT_MAX);
}
CODEC_PAIR(role)

static void upgrade_fields(struct codec *c, struct message_upgrade *m)
{
	m->step = codec_u8(c, m->step);
	m->text = codec_string(c, m->text, 0, MESSAGE_TEXT_MAX);
}
CODEC_PAIR(upgrade)
