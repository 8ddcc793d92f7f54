/* SPDX-License-Identifier: Apache-2.0 */
/* packet: dropped packets whole, damaged and cut at every byte, and hostile NFLOG messages around
 * them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <linux/netlink.h>
#include <linux/netfilter/nfnetlink_log.h>

#include "vethguard/wire/packet.h"

#define V4_HEAD(protocol) "\x45\0\0\x28\0\1\0\0\x40" protocol "\0\0\x0a\0\0\2\x08\x08\x08\x08"
#define SRC6 "\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\2"
#define DST6 "\x20\1\x48\x60\x48\x60\0\0\0\0\0\0\0\0\x88\x88"
#define V6_HEAD(next) "\x60\0\0\0\0\x10" next "\x40" SRC6 DST6

static struct packet parse(uint16_t ethertype, const char *p, size_t n)
{
	struct packet packet;

	memset(&packet, 0xff, sizeof(packet));
	packet_parse(ethertype, (const uint8_t *)p, n, &packet);
	assert_int_equal(packet.ethertype, ethertype);
	return packet;
}
#define PARSE(ethertype, literal) parse(ethertype, literal, sizeof(literal) - 1)

static void expect_ip(const struct ip *ip, const char *text)
{
	char out[IP_TEXT_MAX];

	assert_string_equal(ip_format(ip, out), text);
}

static void ipv4(void **state)
{
	struct packet p = PARSE(0x0800, V4_HEAD("\6") "\x9c\x40\x01\xbb");

	(void)state;
	expect_ip(&p.src, "10.0.0.2");
	expect_ip(&p.dst, "8.8.8.8");
	assert_int_equal(p.protocol, 6);
	assert_int_equal(p.src_port, 40000);
	assert_int_equal(p.dst_port, 443);
	assert_int_equal(p.length, 40); /* as the header says: the copy was shorter */
	assert_false(p.fragment);
	p = PARSE(0x0800, V4_HEAD("\1") "\x08\0\1\2");
	assert_int_equal(p.dst_port, 0x0800);
	assert_int_equal(p.src_port, 0);
	p = PARSE(0x0800, V4_HEAD("\x2f") "\x9c\x40\x01\xbb"); /* GRE has no ports */
	assert_int_equal(p.protocol, 47);
	assert_int_equal(p.dst_port, 0);
	p = PARSE(0x0800,
	        "\x46\0\0\x2c\0\1\0\0\x40\x84\0\0\x0a\0\0\2\x08\x08\x08\x08\1\1\1\1\0\7\0\x09");
	assert_int_equal(p.src_port, 7);
	assert_int_equal(p.dst_port, 9);
}

static void ipv4_fragments(void **state)
{
	struct packet p = PARSE(
	        0x0800, "\x45\0\0\x28\0\1\x20\0\x40\x11\0\0\x0a\0\0\2\x08\x08\x08\x08\0\7\0\x09");

	(void)state;
	assert_true(p.fragment);
	assert_int_equal(p.dst_port, 9);
	p = PARSE(0x0800, "\x45\0\0\x28\0\1\0\1\x40\x11\0\0\x0a\0\0\2\x08\x08\x08\x08\0\7\0\x09");
	assert_true(p.fragment);
	assert_int_equal(p.protocol, 17);
	assert_int_equal(p.dst_port, 0); /* the bytes there are no header */
}

static void ipv4_damaged(void **state)
{
	static const char whole[] = V4_HEAD("\6") "\x9c\x40\x01\xbb";

	(void)state;
	for (size_t n = 0; n < sizeof(whole) - 1; n++) {
		char *copy = test_malloc(n + 1);
		struct packet p;

		memcpy(copy + 1, whole, n);
		p = parse(0x0800, copy + 1, n);
		assert_int_equal(p.src.family, n >= 20 ? 4 : 0);
		assert_int_equal(p.protocol, n >= 20 ? 6 : 0);
		assert_int_equal(p.src_port | p.dst_port, 0);
		test_free(copy);
	}
	assert_int_equal(PARSE(0x0800, "\x55"
	                               "2345678901234567890123456789")
	                         .src.family,
	        0);
	assert_int_equal(PARSE(0x0800, "\x44"
	                               "2345678901234567890123456789")
	                         .src.family,
	        0);
	/* Options announced, not there: addresses are known, ports are not. */
	assert_int_equal(
	        PARSE(0x0800, "\x4f\0\0\x28\0\1\0\0\x40\6\0\0\x0a\0\0\2\x08\x08\x08\x08\0\7\0\x09")
	                .dst_port,
	        0);
	assert_int_equal(
	        PARSE(0x0800, "\x4f\0\0\x28\0\1\0\0\x40\6\0\0\x0a\0\0\2\x08\x08\x08\x08\0\7\0\x09")
	                .protocol,
	        6);
}

static void ipv6(void **state)
{
	struct packet p = PARSE(0x86dd, V6_HEAD("\x11") "\0\x35\0\x36xxxx");

	(void)state;
	expect_ip(&p.src, "fd00::2");
	expect_ip(&p.dst, "2001:4860:4860::8888");
	assert_int_equal(p.protocol, 17);
	assert_int_equal(p.src_port, 53);
	assert_int_equal(p.dst_port, 54);
	assert_int_equal(p.length, 56);
	p = PARSE(0x86dd, V6_HEAD("\x3a") "\x80\0");
	assert_int_equal(p.protocol, 58);
	assert_int_equal(p.dst_port, 0x8000);
	p = PARSE(0x86dd, V6_HEAD("\x3b"));
	assert_int_equal(p.protocol, 59); /* no next header */
}

static void ipv6_extensions(void **state)
{
	struct packet p;

	(void)state;
	/* hop-by-hop, routing of 16 bytes, destination options, authentication of 24 bytes,
	 * fragment (whole), TCP */
	p = PARSE(0x86dd, V6_HEAD("\0") "\x2b\0------"
	                                "\x3c\1--------------"
	                                "\x33\0------"
	                                "\x2c\4----------------------"
	                                "\6\0\0\0----"
	                                "\0\7\0\x09");
	assert_int_equal(p.protocol, 6);
	assert_int_equal(p.dst_port, 9);
	assert_false(p.fragment);
	p = PARSE(0x86dd, V6_HEAD("\x2c") "\x11\0\0\1----\0\7\0\x09"); /* first fragment */
	assert_true(p.fragment);
	assert_int_equal(p.dst_port, 9);
	p = PARSE(0x86dd, V6_HEAD("\x2c") "\x11\0\0\x08----\0\7\0\x09"); /* a later one */
	assert_true(p.fragment);
	assert_int_equal(p.protocol, 17);
	assert_int_equal(p.dst_port, 0);
	p = PARSE(0x86dd, V6_HEAD("\x32") "\0\7\0\x09"); /* ESP hides the rest */
	assert_int_equal(p.protocol, 50);
	assert_int_equal(p.dst_port, 0);
	p = PARSE(0x86dd, V6_HEAD("\0") "\6\xff------"); /* longer than the copy */
	assert_int_equal(p.protocol, 0);
	expect_ip(&p.dst, "2001:4860:4860::8888");
}

static void ipv6_chain_is_bounded(void **state)
{
	uint8_t bytes[40 + 8 * 200];

	(void)state;
	for (size_t count = 0; count < 200; count++) {
		struct packet p;

		memset(bytes, 0, sizeof(bytes));
		memcpy(bytes, V6_HEAD("\x3c"), 40);
		bytes[6] = count ? 60 : 17;
		for (size_t i = 0; i < count; i++)
			bytes[40 + 8 * i] = i + 1 < count ? 60 : 17;
		bytes[40 + 8 * count + 3] = 9;
		packet_parse(0x86dd, bytes, 40 + 8 * count + 4, &p);
		assert_int_equal(p.protocol, count < 32 ? 17 : 0);
		assert_int_equal(p.dst_port, count < 32 ? 9 : 0);
	}
}

static void ipv6_damaged(void **state)
{
	static const char whole[] = V6_HEAD("\0") "\6\0------\0\7\0\x09";

	(void)state;
	for (size_t n = 0; n < sizeof(whole) - 1; n++) {
		char *copy = test_malloc(n + 1);
		struct packet p;

		memcpy(copy + 1, whole, n);
		p = parse(0x86dd, copy + 1, n);
		assert_int_equal(p.src.family, n >= 40 ? 6 : 0);
		assert_int_equal(p.protocol, n >= 48 ? 6 : 0);
		assert_int_equal(p.src_port | p.dst_port, 0);
		test_free(copy);
	}
	assert_int_equal(parse(0x86dd, V4_HEAD("\6") "--------------------", 40).src.family, 0);
}

static void arp_and_others(void **state)
{
	static const char arp[] = "\0\1\x08\0\6\4\0\1ssssss\x0a\0\0\2tttttt\x0a\0\0\1";
	struct packet p = parse(0x0806, arp, 28);

	(void)state;
	expect_ip(&p.src, "10.0.0.2");
	expect_ip(&p.dst, "10.0.0.1");
	for (size_t n = 0; n < 28; n++)
		assert_int_equal(parse(0x0806, arp, n).src.family, 0);
	assert_int_equal(
	        PARSE(0x0806, "\0\1\x86\xdd\6\4\0\1ssssss\x0a\0\0\2tttttt\x0a\0\0\1").src.family,
	        0);
	p = PARSE(0x88cc, V4_HEAD("\6"));
	assert_int_equal(p.src.family, 0);
	assert_int_equal(p.length, 20);
	assert_int_equal(parse(0, NULL, 0).length, 0);
}

static void protocol_names(void **state)
{
	char out[16];

	(void)state;
	assert_string_equal(packet_protocol_name(6, out), "tcp");
	assert_string_equal(packet_protocol_name(58, out), "ipv6-icmp");
	assert_string_equal(packet_protocol_name(47, out), "ip-47");
	assert_string_equal(packet_protocol_name(0, out), "ip-0");
	assert_string_equal(packet_protocol_name(255, out), "ip-255");
}

/* --- NFLOG --- */

static uint8_t datagram[4096];
static size_t datagram_n;
static size_t message_at;

static void add(const void *p, size_t n)
{
	memcpy(datagram + datagram_n, p, n);
	datagram_n += n;
}

static void pad(void)
{
	while (datagram_n % 4)
		datagram[datagram_n++] = 0;
}

static void begin_message(uint16_t type, uint8_t family, uint16_t group)
{
	struct nlmsghdr head = {.nlmsg_type = type};
	uint8_t gen[4] = {family, 0, (uint8_t)(group >> 8), (uint8_t)group};

	message_at = datagram_n;
	add(&head, sizeof(head));
	add(gen, sizeof(gen));
}

static void end_message(void)
{
	uint32_t n = (uint32_t)(datagram_n - message_at);

	memcpy(datagram + message_at, &n, 4);
	pad();
}

static void add_attribute(uint16_t type, const void *p, size_t n)
{
	struct nlattr attr = {.nla_len = (uint16_t)(4 + n), .nla_type = type};

	add(&attr, sizeof(attr));
	add(p, n);
	pad();
}

struct heard {
	size_t count;
	struct nflog_packet last;
	char prefix[64];
};

static void hear(void *context, const struct nflog_packet *packet)
{
	struct heard *heard = context;

	heard->count++;
	heard->last = *packet;
	snprintf(heard->prefix, sizeof(heard->prefix), "%.*s", SLICE_ARG(packet->prefix));
}

static int parse_datagram(struct heard *heard)
{
	uint8_t *copy = test_malloc(datagram_n + 1);
	int err;

	memset(heard, 0, sizeof(*heard));
	memcpy(copy + 1, datagram, datagram_n);
	err = nflog_parse(copy + 1, datagram_n, hear, heard);
	test_free(copy);
	return err;
}

#define PACKET_TYPE (4 << 8 | 0)

static void add_whole_message(void)
{
	begin_message(PACKET_TYPE, AF_INET, 77);
	add_attribute(NFULA_PACKET_HDR, "\x08\0\0\0", 4);
	add_attribute(NFULA_IFINDEX_INDEV, "\0\0\0\7", 4);
	add_attribute(NFULA_PREFIX, "other", 6);
	add_attribute(NFULA_PAYLOAD, V4_HEAD("\x11") "\0\7\0\x09", 24);
	end_message();
}

static void nflog_reads_messages(void **state)
{
	struct heard heard;
	uint32_t n = 20;

	(void)state;
	datagram_n = 0;
	assert_int_equal(parse_datagram(&heard), 0);
	assert_int_equal(heard.count, 0);
	add_whole_message();
	add_whole_message();
	begin_message(NLMSG_DONE, 0, 0);
	end_message();
	memcpy(datagram + message_at, &n, 4);
	assert_int_equal(parse_datagram(&heard), 0);
	assert_int_equal(heard.count, 2);
	assert_int_equal(heard.last.group, 77);
	assert_string_equal(heard.prefix, "other");
	assert_int_equal(heard.last.prefix.n, 5);
	assert_int_equal(heard.last.packet.dst_port, 9);
	assert_int_equal(heard.last.packet.ethertype, 0x0800);
}

static void nflog_fills_gaps(void **state)
{
	struct heard heard;

	(void)state;
	datagram_n = 0;
	begin_message(PACKET_TYPE, AF_INET6, 1);
	add_attribute(NLA_F_NET_BYTEORDER | NFULA_PAYLOAD, V6_HEAD("\x11") "\0\7\0\x09", 44);
	add_attribute(NFULA_PREFIX, "no end", 6);
	end_message();
	assert_int_equal(parse_datagram(&heard), 0);
	assert_int_equal(heard.last.packet.ethertype, 0x86dd); /* by the family */
	assert_int_equal(heard.last.packet.dst_port, 9);
	assert_string_equal(heard.prefix, "no end");
	datagram_n = 0;
	begin_message(PACKET_TYPE, 5, 1); /* NFPROTO_NETDEV, nothing else */
	end_message();
	assert_int_equal(parse_datagram(&heard), 0);
	assert_int_equal(heard.count, 1);
	assert_int_equal(heard.last.packet.ethertype, 0);
	assert_int_equal(heard.last.prefix.n, 0);
}

static void nflog_cut_anywhere(void **state)
{
	struct heard heard;
	size_t whole;
	size_t ok = 0;

	(void)state;
	datagram_n = 0;
	add_whole_message();
	whole = datagram_n;
	for (datagram_n = 1; datagram_n < whole; datagram_n++) {
		ok += parse_datagram(&heard) == 0;
		assert_int_equal(heard.count, 0);
	}
	assert_int_equal(ok, 0);
	/* Copies that were whole before the damage were delivered. */
	datagram_n = whole;
	add_whole_message();
	datagram_n -= 1;
	assert_int_equal(parse_datagram(&heard), -EBADMSG);
	assert_int_equal(heard.count, 1);
}

static void nflog_hostile_lengths(void **state)
{
	static const uint32_t message_lengths[] = {
	        0, 1, 15, 16, 19, 1000, 0x7fffffff, 0x80000000, 0xfffffffc, 0xffffffff};
	static const uint16_t attribute_lengths[] = {
	        0, 1, 3, 25, 29, 32, 1000, 0x7fff, 0xfffc, 0xffff};
	struct heard heard;

	(void)state;
	for (size_t i = 0; i < sizeof(message_lengths) / sizeof(message_lengths[0]); i++) {
		datagram_n = 0;
		add_whole_message();
		memcpy(datagram, &message_lengths[i], 4);
		assert_int_equal(parse_datagram(&heard), -EBADMSG);
		assert_int_equal(heard.count, 0);
	}
	for (size_t i = 0; i < sizeof(attribute_lengths) / sizeof(attribute_lengths[0]); i++) {
		datagram_n = 0;
		begin_message(PACKET_TYPE, AF_INET, 1);
		add_attribute(NFULA_PAYLOAD, V4_HEAD("\x11"), 20);
		end_message();
		memcpy(datagram + 20, &attribute_lengths[i], 2);
		assert_int_equal(parse_datagram(&heard), -EBADMSG);
		assert_int_equal(heard.count, 0);
	}
	datagram_n = 0;
	begin_message(PACKET_TYPE, AF_INET, 1);
	add_attribute(NFULA_PACKET_HDR, "\x08", 1);
	end_message();
	assert_int_equal(parse_datagram(&heard), -EBADMSG);
}

static void nflog_ignores_other_messages(void **state)
{
	static const uint16_t types[] = {
	        NLMSG_NOOP, NLMSG_ERROR, NLMSG_DONE, 4 << 8 | 1, 10 << 8, 0xffff};
	struct heard heard;

	(void)state;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		datagram_n = 0;
		begin_message(types[i], AF_INET, 1);
		add_attribute(NFULA_PAYLOAD, V4_HEAD("\x11"), 20);
		end_message();
		add_whole_message();
		assert_int_equal(parse_datagram(&heard), 0);
		assert_int_equal(heard.count, 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(ipv4),
	        cmocka_unit_test(ipv4_fragments),
	        cmocka_unit_test(ipv4_damaged),
	        cmocka_unit_test(ipv6),
	        cmocka_unit_test(ipv6_extensions),
	        cmocka_unit_test(ipv6_chain_is_bounded),
	        cmocka_unit_test(ipv6_damaged),
	        cmocka_unit_test(arp_and_others),
	        cmocka_unit_test(protocol_names),
	        cmocka_unit_test(nflog_reads_messages),
	        cmocka_unit_test(nflog_fills_gaps),
	        cmocka_unit_test(nflog_cut_anywhere),
	        cmocka_unit_test(nflog_hostile_lengths),
	        cmocka_unit_test(nflog_ignores_other_messages),
	};

	return cmocka_run_group_tests_name("packet", tests, NULL, NULL);
}
