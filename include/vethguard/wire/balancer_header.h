/* SPDX-License-Identifier: Apache-2.0 */
/*
 * balancer_header: parses the header in which a load balancer tells the address of the client whose connection it
 * passes on: the PROXY protocol, version 2, for TCP. Skips what follows the addresses (TLVs). Pure and strict.
 */
#ifndef VETHGUARD_WIRE_BALANCER_HEADER_H
#define VETHGUARD_WIRE_BALANCER_HEADER_H

#include "vethguard/base/ip.h"

#define BALANCER_HEADER_FIXED 16 /* bytes before the addresses */
#define BALANCER_HEADER_MAX 1024 /* bytes in all */

enum balancer_header_status {
	BALANCER_HEADER_DONE,
	BALANCER_HEADER_MORE, /* valid so far but incomplete: read on */
	BALANCER_HEADER_BAD
};

struct balancer_header {
	bool local;       /* the balancer's own connection: source is not set */
	struct ip source; /* of the client; an IPv4-mapped address (RFC 4291 section 2.5.5.2) is given as IPv4 */
	uint16_t source_port;
	size_t used; /* bytes of the header */
};

/* Parses the n bytes received so far. */
enum balancer_header_status balancer_header_parse(const uint8_t *p, size_t n, struct balancer_header *out);

#endif
