/* SPDX-License-Identifier: Apache-2.0 */
/* Destinations: names taken over, texts for people. */
#include <stdio.h>
#include <string.h>

#include "proxy/destination.h"

bool destination_set_host(struct destination *d, struct slice host)
{
	if (host.n > POLICY_HOST_MAX)
		return false;
	memcpy(d->host, host.p, host.n);
	d->host[host.n] = '\0';
	d->host_n = host.n;
	d->address = (struct ip){0};
	return true;
}

const char *destination_text(const struct destination *d, char *out)
{
	char ip[IP_TEXT_MAX];
	int n;

	if (d->host_n)
		n = snprintf(out, POLICY_HOST_MAX + 16, "%s", d->host);
	else if (d->address.family == 6)
		n = snprintf(out, POLICY_HOST_MAX + 16, "[%s]", ip_format(&d->address, ip));
	else
		n = snprintf(out, POLICY_HOST_MAX + 16, "%s",
		        d->address.family ? ip_format(&d->address, ip) : "?");
	if (d->port)
		snprintf(out + n, (size_t)(POLICY_HOST_MAX + 16 - n), ":%u", d->port);
	return out;
}
