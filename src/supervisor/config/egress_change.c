/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares the egress settings of two configurations: name servers, permitted private networks,
 * source addresses and the proxy for upstreams. A worker is told these once, when it starts.
 */
#include "supervisor/config/settings.h"

static bool same_servers(const struct settings *a, const struct settings *b)
{
	if (a->server_count != b->server_count)
		return false;
	for (size_t i = 0; i < a->server_count; i++)
		if (a->servers[i].port != b->servers[i].port ||
		        !ip_equals(&a->servers[i].address, &b->servers[i].address))
			return false;
	return true;
}

static bool same_hosts(const struct settings *a, const struct settings *b)
{
	if (a->host_count != b->host_count)
		return false;
	for (size_t i = 0; i < a->host_count; i++)
		if (strcmp(a->hosts[i].name, b->hosts[i].name) != 0 ||
		        !ip_equals(&a->hosts[i].address, &b->hosts[i].address))
			return false;
	return true;
}

static bool same_permit(const struct config *a, const struct config *b)
{
	if (a->permit_count != b->permit_count)
		return false;
	for (size_t i = 0; i < a->permit_count; i++)
		if (a->permit[i].bits != b->permit[i].bits ||
		        !ip_equals(&a->permit[i].base, &b->permit[i].base))
			return false;
	return true;
}

static bool same_egress(const struct config_egress *a, const struct config_egress *b)
{
	return a->proxy_port == b->proxy_port && strcmp(a->proxy_host, b->proxy_host) == 0 &&
	       ip_equals(&a->proxy_address, &b->proxy_address) &&
	       a->resolve_local == b->resolve_local && strcmp(a->interface, b->interface) == 0 &&
	       ip_equals(&a->address4, &b->address4) && ip_equals(&a->address6, &b->address6);
}

bool settings_same_egress(const struct settings *a, const struct settings *b)
{
	return a == b ||
	       (same_servers(a, b) && same_hosts(a, b) && same_permit(&a->config, &b->config) &&
	               same_egress(&a->config.egress, &b->config.egress) &&
	               slice_equals(secret_slice(&a->egress_pair), secret_slice(&b->egress_pair)));
}
