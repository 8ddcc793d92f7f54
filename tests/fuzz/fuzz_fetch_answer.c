/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as an answer of STS and as a URL of a service. What is found in XML stands between its
 * tags, without markup; a URL that is taken has a host, and without TLS only a link-local address.
 */
#include <stdint.h>
#include <stdlib.h>

#include "fetch/https.h"
#include "vethguard/base/ip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
	if (!fact)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct slice text = slice_of(data, size);
	struct fetch_site site;
	struct slice found;
	struct ip ip;

	if (https_xml_element(text, "Id", &found)) {
		require(found.p >= text.p + 4 && found.p + found.n + 5 <= text.p + text.n);
		require(memcmp(found.p - 4, "<Id>", 4) == 0);
		require(memcmp(found.p + found.n, "</Id>", 5) == 0);
		require(slice_find_byte(found, '<') < 0 && slice_find_byte(found, '&') < 0);
	}
	if (fetch_site_read(text, &site)) {
		require(site.host[0] && site.port);
		if (slice_starts_with(text, SLICE("http://")))
			require(ip_parse(slice_from_string(site.host), &ip) &&
			        ip_classify(&ip) != IP_PUBLIC && ip_classify(&ip) != IP_PRIVATE);
	}
	return 0;
}
