/* SPDX-License-Identifier: Apache-2.0 */
/* ip: every class at the borders of every range, strict text forms, socket addresses. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>

#include "vethguard/base/ip.h"

static struct ip parsed(const char *text)
{
	struct ip ip;

	if (!ip_parse(slice_from_string(text), &ip))
		fail_msg("not an address: %s", text);
	return ip;
}

/* first, last: a range of one class; before, after: its neighbors outside, with their class. */
static const struct {
	enum ip_class class;
	const char *first, *last;
	const char *before;
	enum ip_class before_class;
	const char *after;
	enum ip_class after_class;
} ranges[] = {
        {IP_UNSPECIFIED, "0.0.0.0", "0.0.0.0", NULL, 0, "0.0.0.1", IP_RESERVED},
        {IP_RESERVED, "0.0.0.1", "0.255.255.255", NULL, 0, "1.0.0.0", IP_PUBLIC},
        {IP_PRIVATE, "10.0.0.0", "10.255.255.255", "9.255.255.255", IP_PUBLIC, "11.0.0.0",
                IP_PUBLIC},
        {IP_CGNAT, "100.64.0.0", "100.127.255.255", "100.63.255.255", IP_PUBLIC, "100.128.0.0",
                IP_PUBLIC},
        {IP_METADATA, "100.100.100.200", "100.100.100.200", "100.100.100.199", IP_CGNAT,
                "100.100.100.201", IP_CGNAT},
        {IP_LOOPBACK, "127.0.0.0", "127.255.255.255", "126.255.255.255", IP_PUBLIC, "128.0.0.0",
                IP_PUBLIC},
        {IP_METADATA, "168.63.129.16", "168.63.129.16", "168.63.129.15", IP_PUBLIC, "168.63.129.17",
                IP_PUBLIC},
        {IP_LINK_LOCAL, "169.254.0.0", "169.254.255.255", "169.253.255.255", IP_PUBLIC,
                "169.255.0.0", IP_PUBLIC},
        {IP_METADATA, "169.254.169.254", "169.254.169.254", "169.254.169.253", IP_LINK_LOCAL,
                "169.254.169.255", IP_LINK_LOCAL},
        {IP_PRIVATE, "172.16.0.0", "172.31.255.255", "172.15.255.255", IP_PUBLIC, "172.32.0.0",
                IP_PUBLIC},
        {IP_RESERVED, "192.0.0.0", "192.0.0.191", "191.255.255.255", IP_PUBLIC, "192.0.0.192",
                IP_METADATA},
        {IP_RESERVED, "192.0.0.193", "192.0.0.255", "192.0.0.192", IP_METADATA, "192.0.1.0",
                IP_PUBLIC},
        {IP_RESERVED, "192.0.2.0", "192.0.2.255", "192.0.1.255", IP_PUBLIC, "192.0.3.0", IP_PUBLIC},
        {IP_6TO4, "192.88.99.0", "192.88.99.255", "192.88.98.255", IP_PUBLIC, "192.88.100.0",
                IP_PUBLIC},
        {IP_PRIVATE, "192.168.0.0", "192.168.255.255", "192.167.255.255", IP_PUBLIC, "192.169.0.0",
                IP_PUBLIC},
        {IP_RESERVED, "198.18.0.0", "198.19.255.255", "198.17.255.255", IP_PUBLIC, "198.20.0.0",
                IP_PUBLIC},
        {IP_RESERVED, "198.51.100.0", "198.51.100.255", "198.51.99.255", IP_PUBLIC, "198.51.101.0",
                IP_PUBLIC},
        {IP_RESERVED, "203.0.113.0", "203.0.113.255", "203.0.112.255", IP_PUBLIC, "203.0.114.0",
                IP_PUBLIC},
        {IP_MULTICAST, "224.0.0.0", "239.255.255.255", "223.255.255.255", IP_PUBLIC, "240.0.0.0",
                IP_RESERVED},
        {IP_RESERVED, "240.0.0.0", "255.255.255.254", NULL, 0, "255.255.255.255", IP_BROADCAST},

        {IP_UNSPECIFIED, "::", "::", NULL, 0, "::1", IP_LOOPBACK},
        {IP_MAPPED, "::2", "::ffff:ffff", NULL, 0, "::1:0:0", IP_RESERVED},
        {IP_MAPPED, "::ffff:0.0.0.0", "::ffff:255.255.255.255", "::fffe:ffff:ffff", IP_RESERVED,
                "::1:0:0:0", IP_RESERVED},
        {IP_MAPPED, "::ffff:0:0:0", "::ffff:0:ffff:ffff", "::fffe:ffff:ffff:ffff", IP_RESERVED,
                "::ffff:1:0:0", IP_RESERVED},
        {IP_NAT64, "64:ff9b::", "64:ff9b::ffff:ffff", "64:ff9a:ffff:ffff:ffff:ffff:ffff:ffff",
                IP_RESERVED, "64:ff9b::1:0:0", IP_RESERVED},
        {IP_NAT64, "64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff",
                "64:ff9b:0:ffff:ffff:ffff:ffff:ffff", IP_RESERVED, "64:ff9b:2::", IP_RESERVED},
        {IP_RESERVED, "100::", "100::ffff:ffff:ffff:ffff", NULL, 0, "100:0:0:1::", IP_RESERVED},
        {IP_TEREDO, "2001::", "2001:0:ffff:ffff:ffff:ffff:ffff:ffff",
                "2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff", IP_PUBLIC, "2001:1::", IP_RESERVED},
        {IP_RESERVED, "2001:1::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", NULL, 0,
                "2001:200::", IP_PUBLIC},
        {IP_RESERVED, "2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff",
                "2001:db7:ffff:ffff:ffff:ffff:ffff:ffff", IP_PUBLIC, "2001:db9::", IP_PUBLIC},
        {IP_6TO4, "2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
                "2001:ffff:ffff:ffff:ffff:ffff:ffff:ffff", IP_PUBLIC, "2003::", IP_PUBLIC},
        {IP_RESERVED, "3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff",
                "3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff", IP_PUBLIC, "3fff:1000::", IP_PUBLIC},
        {IP_PUBLIC, "3fff:1000::", "3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", NULL, 0,
                "4000::", IP_RESERVED},
        {IP_RESERVED, "4000::", "fbff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", NULL, 0,
                "fc00::", IP_PRIVATE},
        {IP_RESERVED, "5f00::", "5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff", NULL, 0, NULL, 0},
        {IP_PRIVATE, "fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", NULL, 0,
                "fe00::", IP_RESERVED},
        {IP_METADATA, "fd00:ec2::254", "fd00:ec2::254", "fd00:ec2::253", IP_PRIVATE,
                "fd00:ec2::255", IP_PRIVATE},
        {IP_METADATA, "fd20:ce::254", "fd20:ce::254", "fd20:ce::253", IP_PRIVATE, "fd20:ce::255",
                IP_PRIVATE},
        {IP_METADATA, "fd00:c1::a9fe:a9fe", "fd00:c1::a9fe:a9fe", "fd00:c1::a9fe:a9fd", IP_PRIVATE,
                "fd00:c1::a9fe:a9ff", IP_PRIVATE},
        {IP_LINK_LOCAL, "fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
                "fe7f:ffff:ffff:ffff:ffff:ffff:ffff:ffff", IP_RESERVED, "fec0::", IP_PRIVATE},
        {IP_PRIVATE, "fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", NULL, 0,
                "ff00::", IP_MULTICAST},
        {IP_MULTICAST, "ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", NULL, 0, NULL, 0},
};

static void expect_class(const char *text, enum ip_class class)
{
	struct ip ip = parsed(text);

	if (ip_classify(&ip) != class)
		fail_msg("%s is %s, not %s", text, ip_class_name(ip_classify(&ip)),
		        ip_class_name(class));
}

static void classifies_every_border(void **state)
{
	bool seen[IP_CLASS_COUNT] = {false};

	(void)state;
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		expect_class(ranges[i].first, ranges[i].class);
		expect_class(ranges[i].last, ranges[i].class);
		if (ranges[i].before)
			expect_class(ranges[i].before, ranges[i].before_class);
		if (ranges[i].after)
			expect_class(ranges[i].after, ranges[i].after_class);
		seen[ranges[i].class] = seen[ranges[i].after_class] = true;
	}
	for (int c = 0; c < IP_CLASS_COUNT; c++)
		assert_true(seen[c]);
}

static void public_is_public(void **state)
{
	static const char *const texts[] = {"1.1.1.1", "8.8.8.8", "93.184.216.34", "140.82.112.3",
	        "2606:4700::1111", "2a00:1450:4001::200e", "2001:4860:4860::8888",
	        "2620:4f:8000::1"};
	struct ip none = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		expect_class(texts[i], IP_PUBLIC);
	assert_int_not_equal(ip_classify(&none), IP_PUBLIC);
	for (int c = 0; c < IP_CLASS_COUNT; c++)
		assert_true(strlen(ip_class_name((enum ip_class)c)) > 3);
	assert_string_equal(ip_class_name(IP_CLASS_COUNT), "unknown");
}

static void parses_strictly(void **state)
{
	static const char *const bad[] = {"", ".", "1", "1.2", "1.2.3", "1.2.3.4.5", "1.2.3.256",
	        "01.2.3.4", "1.2.3.04", "1.2.3.4 ", " 1.2.3.4", "1.2.3.", ".1.2.3", "0x7f.0.0.1",
	        "127.1", "2130706433", "1.2.3.-4", "1.2.3.+4", "[1.2.3.4]", "::1%lo", "fe80::1%1",
	        "[::1", "::1]", "[]", "[::1]:80", "1::2::3", "12345::", ":1",
	        "1:", ":::", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "::ffff:1.2.3",
	        "::ffff:1.2.3.256", "g::", "::1/128", "1.2.3.4/32", "localhost", "[[::1]]",
	        "1111:2222:3333:4444:5555:6666:255.255.255.2555"};
	struct ip ip;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (ip_parse(slice_from_string(bad[i]), &ip))
			fail_msg("parsed: %s", bad[i]);
	assert_false(ip_parse(SLICE("1.2.3.4\0"), &ip));
	assert_false(ip_parse(SLICE("::1\0"), &ip));
	assert_true(ip_parse(SLICE("[2001:DB8::1]"), &ip));
	assert_int_equal(ip.family, 6);
	assert_true(ip_parse(slice_of("1.2.3.45", 7), &ip));
	assert_int_equal(ip.family, 4);
	assert_int_equal(ip.bytes[3], 4);
	assert_int_equal(ip.bytes[4], 0);
}

static void formats_canonically(void **state)
{
	static const char *const pairs[][2] = {{"1.2.3.4", "1.2.3.4"},
	        {"2001:DB8:0:0:1:0:0:1", "2001:db8::1:0:0:1"},
	        {"2001:db8::1:1:1:1:1", "2001:db8:0:1:1:1:1:1"}, {"0:0:0:0:0:0:0:0", "::"},
	        {"::FFFF:1.2.3.4", "::ffff:1.2.3.4"},
	        {"ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255",
	                "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"}};
	struct ip none = {.family = 9};
	char out[IP_TEXT_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		struct ip ip = parsed(pairs[i][0]);

		assert_string_equal(ip_format(&ip, out), pairs[i][1]);
	}
	assert_string_equal(ip_format(&none, out), "-");
}

static void prefixes(void **state)
{
	static const char *const bad[] = {"", "/", "10.0.0.0/", "/8", "10.0.0.0/33", "10.0.0.1/8",
	        "10.0.0.0/08", "10.0.0.0/-1", "10.0.0.0/8 ", "10.0.0.0/8/8", "::/129",
	        "2001:db8::1/64", "10.0.0.0/999999999999999999999", "1.2.3.4/31x", "1.1.1.1/31"};
	struct ip_prefix p;
	struct ip ip;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (ip_prefix_parse(slice_from_string(bad[i]), &p))
			fail_msg("parsed: %s", bad[i]);
	assert_true(ip_prefix_parse(SLICE("1.2.3.4"), &p));
	assert_int_equal(p.bits, 32);
	assert_true(ip_prefix_parse(SLICE("[::1]/128"), &p));
	assert_int_equal(p.bits, 128);
	assert_true(ip_prefix_parse(SLICE("0.0.0.0/0"), &p));
	ip = parsed("255.1.2.3");
	assert_true(ip_in_prefix(&ip, &p));
	ip = parsed("::1");
	assert_false(ip_in_prefix(&ip, &p));
	ip = (struct ip){0};
	assert_false(ip_in_prefix(&ip, &p));
	assert_true(ip_prefix_parse(SLICE("10.1.2.0/23"), &p));
	ip = parsed("10.1.3.255");
	assert_true(ip_in_prefix(&ip, &p));
	ip = parsed("10.1.4.0");
	assert_false(ip_in_prefix(&ip, &p));
	ip = parsed("10.1.1.255");
	assert_false(ip_in_prefix(&ip, &p));
	p.bits = 200; /* no such prefix: it must hold nothing, and read no byte past the address */
	assert_false(ip_in_prefix(&ip, &p));
}

static void carried_addresses(void **state)
{
	static const struct {
		const char *in;
		unsigned bits;
		const char *out;
	} cases[] = {
	        {"::ffff:192.0.2.33", 96, "192.0.2.33"},
	        {"::ffff:0:192.0.2.33", 0, "192.0.2.33"},
	        {"::192.0.2.33", 96, "192.0.2.33"},
	        {"64:ff9b::192.0.2.33", 96, "192.0.2.33"},
	        {"64:ff9b::192.0.2.33", 48, "192.0.2.33"}, /* always 96 */
	        {"64:ff9b:1::192.0.2.33", 96, "192.0.2.33"},
	        {"64:ff9b:1:c000:2:2100::", 48, "192.0.2.33"},
	        {"64:ff9b:1:1c0:0:221::", 56, "192.0.2.33"},
	        {"64:ff9b:1:1:c0:2:2100:0", 64, "192.0.2.33"},
	        {"64:ff9b:1::192.0.2.33", 52, "192.0.2.33"},
	        {"2001:4860::8888", 96, "-"},
	        {"fd00::1", 96, "-"},
	        {"10.0.0.1", 96, "-"},
	};
	char text[IP_TEXT_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ip ip = parsed(cases[i].in), carried = ip_carried(&ip, cases[i].bits);

		assert_string_equal(ip_format(&carried, text), cases[i].out);
	}
}

static void socket_addresses(void **state)
{
	static const char *const texts[] = {"192.0.2.7", "2001:db8::7"};
	struct sockaddr_storage ss;
	struct sockaddr other = {.sa_family = AF_UNIX};
	struct ip none = {0};
	uint16_t port = 1;

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct ip ip = parsed(texts[i]);
		struct ip back;
		socklen_t n = ip_to_sockaddr(&ip, 8443, &ss);

		assert_int_equal(n, i ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
		back = ip_from_sockaddr((struct sockaddr *)&ss, &port);
		assert_true(ip_equals(&ip, &back));
		assert_int_equal(port, 8443);
		back = ip_from_sockaddr((struct sockaddr *)&ss, NULL);
		back.bytes[ip.family == 4 ? 3 : 15] ^= 1;
		assert_false(ip_equals(&ip, &back));
	}
	assert_int_equal(ip_from_sockaddr(&other, &port).family, 0);
	assert_int_equal(port, 0);
	assert_int_equal(ip_to_sockaddr(&none, 1, &ss), 0);
}

/* The network, then which of the addresses it means. */
static void what_a_network_means(void **state)
{
	static const struct {
		const char *network, *address;
		bool means;
	} cases[] = {
	        {"0.0.0.0/0", "8.8.8.8", true},
	        {"0.0.0.0/0", "10.0.0.1", false},
	        {"0.0.0.0/0", "127.0.0.1", false},
	        {"0.0.0.0/0", "169.254.169.254", false},
	        {"0.0.0.0/0", "0.0.0.0", false},
	        {"0.0.0.0/0", "100.64.0.1", false},
	        {"0.0.0.0/0", "224.0.0.1", false},
	        {"0.0.0.0/0", "255.255.255.255", false},
	        {"0.0.0.0/0", "198.18.0.1", false},
	        {"0.0.0.0/0", "::1", false},
	        {"10.0.0.0/7", "10.0.0.1", false},
	        {"10.0.0.0/7", "11.0.0.1", true},
	        {"10.0.0.0/8", "10.0.0.1", true},
	        {"10.20.0.0/16", "10.20.0.1", true},
	        {"10.20.0.0/16", "10.21.0.1", false},
	        {"172.0.0.0/8", "172.16.0.1", false},
	        {"172.0.0.0/8", "172.1.0.1", true},
	        {"192.168.0.0/15", "192.168.0.1", false},
	        {"100.64.0.0/10", "100.64.0.1", true},
	        {"100.64.0.0/10", "100.100.100.200", false},
	        {"100.100.100.200/31", "100.100.100.200", false},
	        {"100.100.100.200/32", "100.100.100.200", true},
	        {"168.63.0.0/16", "168.63.129.16", false},
	        {"168.63.0.0/16", "168.63.129.17", true},
	        {"169.254.0.0/16", "169.254.1.1", false},
	        {"169.254.169.254/31", "169.254.169.254", false},
	        {"169.254.169.254/32", "169.254.169.254", true},
	        {"127.0.0.0/8", "127.0.0.1", false},
	        {"127.0.0.1/32", "127.0.0.1", true},
	        {"127.0.0.1/32", "127.0.0.2", false},
	        {"224.0.0.0/4", "224.0.0.1", false},
	        {"198.18.0.0/15", "198.18.0.1", true},
	        {"198.0.0.0/8", "198.18.0.1", false},
	        {"240.0.0.0/4", "255.255.255.255", false},
	        {"192.88.99.0/24", "192.88.99.1", false},
	        {"::/0", "2606:4700::1", true},
	        {"::/0", "::1", false},
	        {"::/0", "::", false},
	        {"::/0", "fe80::1", false},
	        {"::/0", "fd00::1", false},
	        {"::/0", "ff02::1", false},
	        {"::/0", "100::1", false},
	        {"::/0", "2002:7f00:1::", false},
	        {"::/0", "2001::1", false},
	        {"::/0", "::ffff:8.8.8.8", false},
	        {"::/0", "64:ff9b::8.8.8.8", false},
	        {"::/0", "fd00:ec2::254", false},
	        {"::/1", "5f00::1", false},
	        {"5f00::/16", "5f00::1", true},
	        {"fc00::/6", "fd00::1", false},
	        {"fc00::/7", "fd00::1", true},
	        {"fc00::/7", "fd00:ec2::254", false},
	        {"fd00:ec2::/64", "fd00:ec2::254", false},
	        {"fd00:ec2::254/128", "fd00:ec2::254", true},
	        {"fe80::/10", "fe80::1", false},
	        {"2002::/16", "2002:7f00:1::", false},
	        {"2002:a00:1::/48", "2002:a00:1::1", false},
	        {"2001::/32", "2001::1", false},
	        {"::ffff:0:0/96", "::ffff:8.8.8.8", true},
	        {"::ffff:0:0/96", "::ffff:10.0.0.1", false},
	        {"::ffff:10.0.0.0/104", "::ffff:10.0.0.1", true},
	        {"::ffff:10.0.0.0/103", "::ffff:10.0.0.1", false},
	        {"::ffff:127.0.0.0/104", "::ffff:127.0.0.1", false},
	        {"::ffff:127.0.0.1/128", "::ffff:127.0.0.1", true},
	        {"64:ff9b::/96", "64:ff9b::8.8.8.8", true},
	        {"64:ff9b::/96", "64:ff9b::a9fe:a9fe", false},
	        {"64:ff9b::a9fe:a9fe/127", "64:ff9b::a9fe:a9fe", false},
	        {"64:ff9b::c0a8:700/120", "64:ff9b::c0a8:701", true},
	        {"64:ff9b:1::/48", "64:ff9b:1:808:8:800::", true},
	        {"64:ff9b:1::/48", "64:ff9b:1:a01:2:300::", false},
	        {"64:ff9b::/32", "64:ff9b::8.8.8.8", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ip ip = parsed(cases[i].address);
		struct ip_prefix network;

		assert_true(ip_prefix_parse(slice_from_string(cases[i].network), &network));
		if (ip_network_means(&network, &ip) != cases[i].means)
			fail_msg("%s and %s", cases[i].network, cases[i].address);
	}
}

static void classes_of_networks(void **state)
{
	static const struct {
		const char *network;
		enum ip_class class;
		bool mixed;
	} cases[] = {
	        {"0.0.0.0/0", IP_PUBLIC, true},
	        {"::/0", IP_PUBLIC, true},
	        {"10.0.0.0/7", IP_PUBLIC, true},
	        {"10.0.0.0/8", IP_PRIVATE, false},
	        {"8.8.8.0/24", IP_PUBLIC, false},
	        {"168.63.0.0/16", IP_PUBLIC, true},
	        {"100.64.0.0/10", IP_CGNAT, true},
	        {"127.0.0.0/8", IP_LOOPBACK, false},
	        {"127.0.0.1/32", IP_LOOPBACK, false},
	        {"2606::/16", IP_PUBLIC, false},
	        {"2000::/3", IP_PUBLIC, true},
	        {"64:ff9b::/96", IP_NAT64, false},
	};
	struct ip_prefix network;
	size_t count = 0;
	bool mixed;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_true(ip_prefix_parse(slice_from_string(cases[i].network), &network));
		if (ip_network_class(&network, &mixed) != cases[i].class || mixed != cases[i].mixed)
			fail_msg("%s", cases[i].network);
	}
	while (ip_class_range(count, &network))
		count++;
	assert_true(count > 30 && count < 100);
}

/* Networks that a configuration permits: like a rule's network, except addresses inside a
 * translator's prefix. */
static void several_networks(void **state)
{
	static const struct {
		const char *networks[3], *ip;
		bool permit, name;
	} cases[] = {{{"10.0.0.5"}, "10.0.0.5", true, true},
	        {{"10.0.0.5"}, "10.0.0.6", false, false}, {{"10.0.0.0/8"}, "10.0.0.5", true, false},
	        {{"10.0.0.0/7"}, "10.0.0.5", false, false},
	        {{"0.0.0.0/0", "10.0.0.5"}, "10.0.0.5", true, true},
	        {{"127.0.0.0/8"}, "127.0.0.1", false, false},
	        {{"127.0.0.1"}, "127.0.0.1", true, true}, {{NULL}, "10.0.0.5", false, false},
	        {{NULL}, "8.8.8.8", false, false},
	        {{"64:ff9b::/96"}, "64:ff9b::8.8.8.8", true, false},
	        {{"64:ff9b::/96"}, "64:ff9b::10.0.0.5", false, false},
	        {{"64:ff9b::/96", "10.0.0.0/8"}, "64:ff9b::10.0.0.5", true, false},
	        {{"10.0.0.0/8", "64:ff9b::/96"}, "64:ff9b::10.0.0.5", true, false},
	        {{"10.0.0.0/8"}, "64:ff9b::10.0.0.5", false, false},
	        {{"64:ff9b::10.0.0.5"}, "64:ff9b::10.0.0.5", true, true},
	        {{"::10.0.0.0/104"}, "10.0.0.5", false, false}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ip_prefix networks[3];
		struct ip ip;
		size_t n = 0;

		for (; n < 3 && cases[i].networks[n]; n++)
			assert_true(ip_prefix_parse(
			        slice_from_string(cases[i].networks[n]), &networks[n]));
		assert_true(ip_parse(slice_from_string(cases[i].ip), &ip));
		if (ip_networks_permit(networks, n, &ip) != cases[i].permit)
			fail_msg("%zu: %s is%s permitted", i, cases[i].ip,
			        cases[i].permit ? " not" : "");
		assert_int_equal(ip_networks_name(networks, n, &ip), cases[i].name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(classifies_every_border),
	        cmocka_unit_test(public_is_public),
	        cmocka_unit_test(several_networks),
	        cmocka_unit_test(parses_strictly),
	        cmocka_unit_test(formats_canonically),
	        cmocka_unit_test(prefixes),
	        cmocka_unit_test(carried_addresses),
	        cmocka_unit_test(what_a_network_means),
	        cmocka_unit_test(classes_of_networks),
	        cmocka_unit_test(socket_addresses),
	};

	return cmocka_run_group_tests_name("ip", tests, NULL, NULL);
}
