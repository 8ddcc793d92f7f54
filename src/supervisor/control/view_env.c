/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON of what a program in a sandbox needs: variables, the CA, name servers, the proxy. */
#include <jansson.h>
#include <stdio.h>

#include "vethguard/wire/json.h"
#include "supervisor/control/call.h"

static void put_proxy(struct json *j, const struct attach_env *env)
{
	const struct ip *gate = env->gate4.family ? &env->gate4 : &env->gate6;
	char text[IP_TEXT_MAX], url[IP_TEXT_MAX + 32];

	if (!gate->family || env->proxy_port == 0) {
		json_put_null(j, "proxy");
		return;
	}
	ip_format(gate, text);
	snprintf(url, sizeof(url), gate->family == 6 ? "http://[%s]:%u" : "http://%s:%u", text,
	        (unsigned)env->proxy_port);
	json_put_literal(j, "proxy", url);
}

/* Writes the first listener (with TLS, or without) that is reachable from other hosts, otherwise
 * one on this host's loopback. null: there is none, or it listens at every address and the
 * configuration gives no name for it. */
static void put_place(struct json *j, const char *key, const struct config_gateway *gateway,
        enum config_gateway_kind kind)
{
	const struct config_gateway_listener *found = NULL;
	char text[POLICY_HOST_MAX + IP_TEXT_MAX + 16], ip[IP_TEXT_MAX];
	bool named;

	for (size_t i = 0; i < gateway->listener_count; i++) {
		const struct config_gateway_listener *l = &gateway->listeners[i];

		if (l->kind == kind && (!found || ip_classify(&found->address) == IP_LOOPBACK))
			found = l;
	}
	named = found && gateway->name[0] && ip_classify(&found->address) != IP_LOOPBACK;
	if (named)
		snprintf(text, sizeof(text), "%s:%u", gateway->name, (unsigned)found->port);
	else if (found)
		snprintf(text, sizeof(text), found->address.family == 6 ? "[%s]:%u" : "%s:%u",
		        ip_format(&found->address, ip), (unsigned)found->port);
	if (!found || (!named && ip_classify(&found->address) == IP_UNSPECIFIED))
		json_put_null(j, key);
	else
		json_put_literal(j, key, text);
}

static void put_gateway(struct json *j, const struct config_gateway *gateway)
{
	if (!gateway) {
		json_put_null(j, "gateway");
		return;
	}
	json_put_object(j, "gateway");
	put_place(j, "tls", gateway, CONFIG_GATEWAY_TLS);
	put_place(j, "plain", gateway, CONFIG_GATEWAY_PLAIN);
	json_put_end_object(j);
}

void control_put_env(struct json *j, const char *name, const struct attach_env *env)
{
	char text[IP_TEXT_MAX];

	json_put_object(j, NULL);
	json_put_string(j, "name", slice_from_string(name), 0);
	json_put_array(j, "variables");
	for (size_t i = 0; i < env->count; i++) {
		json_put_object(j, NULL);
		json_put_string(j, "name", env->items[i].name, 0);
		json_put_string(j, "value", env->items[i].value, 0);
		json_put_end_object(j);
	}
	json_put_end_array(j);
	json_put_string(j, "ca_pem", slice_from_string(env->root_pem), 0);
	json_put_array(j, "nameservers");
	if (env->gate4.family)
		json_put_literal(j, NULL, ip_format(&env->gate4, text));
	if (env->gate6.family)
		json_put_literal(j, NULL, ip_format(&env->gate6, text));
	json_put_end_array(j);
	put_proxy(j, env);
	put_gateway(j, env->gateway);
	json_put_end_object(j);
}
