/* SPDX-License-Identifier: Apache-2.0 */
/* What a guard cannot do in a namespace that it shares with the sandbox (`vethguard sidecar`). The
 * fence there is not the supervisor's: it cannot be changed for another policy. */
#include <stdio.h>
#include <string.h>

#include "supervisor/supervisor.h"

/* Docker's resolver asks from inside of the container's namespace, as another user than the
 * guard's: its questions would come back to the guard. */
static bool asks_docker(const struct settings *settings)
{
	static const uint8_t resolver[] = {127, 0, 0, 11};

	for (size_t i = 0; i < settings->server_count; i++)
		if (settings->servers[i].address.family == 4 &&
		        memcmp(settings->servers[i].address.bytes, resolver, sizeof(resolver)) == 0)
			return true;
	return false;
}

static bool reaches(const struct sandbox *s, uint16_t port)
{
	for (size_t i = 0; i < s->shared_udp_count; i++)
		if (s->shared_udp_ports[i] == port)
			return true;
	return false;
}

/* Returns a port whose datagrams the fence does not let reach the guard, or 0. */
static uint16_t find_unreached(const struct sandbox *s, const struct policy *policy)
{
	uint16_t ports[POLICY_UDP_PORTS_MAX];
	size_t count = sandbox_udp_ports(policy, ports);

	for (size_t i = 0; i < count; i++)
		if (!reaches(s, ports[i]))
			return ports[i];
	return 0;
}

bool sandbox_cannot_share(
        const struct sandbox *s, const struct settings *settings, char why[GATE_WHY_MAX])
{
	const uint16_t port = find_unreached(s, &settings->policy);

	if (port)
		snprintf(why, GATE_WHY_MAX,
		        "the policy has a udp:// rule for port %u, which the fence does not lead "
		        "to the guard: give --udp %u to 'sidecar init' and to 'sidecar run'",
		        (unsigned)port, (unsigned)port);
	else if (asks_docker(settings))
		snprintf(why, GATE_WHY_MAX,
		        "the resolver 127.0.0.11 is Docker's, whose own questions the fence would "
		        "lead back to the guard: name the resolvers in the configuration "
		        "(resolver: servers:)");
	return port || asks_docker(settings);
}
