/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine behind the tap takes the place of the namespace: it has the address and the MAC that
 * the gate knows. So the link's own end gives both up (the bridge would keep frames for its MAC),
 * and nothing in the namespace itself speaks any more: its interfaces have no address of either
 * family. The tap has no owner, so a process needs no rights over this network to open it.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/prepare/tap.h"
#include "vethguard/base/hash.h"
#include "vethguard/netlink/netns.h"

#define LINK "eth0"
#define BRIDGE "vgbr0"
#define TUN_DEVICE "/dev/net/tun"

struct work {
	const char *name, *step;
};

#define STEP(text, call)                  \
	do {                              \
		if (!rc) {                \
			w->step = (text); \
			rc = (call);      \
		}                         \
	} while (0)

bool tap_name_is_valid(const char *name)
{
	size_t n = strlen(name);

	return n > 0 && n < IFNAMSIZ && !strpbrk(name, "/% \t\n:") && strcmp(name, ".") != 0 &&
	       strcmp(name, "..") != 0 && strcmp(name, LINK) != 0 && strcmp(name, BRIDGE) != 0 &&
	       strcmp(name, "lo") != 0;
}

static int make_tap(const char *name)
{
	struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI};
	int fd = open(TUN_DEVICE, O_RDWR | O_CLOEXEC), rc = 0;

	if (fd < 0)
		return -errno;
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	if (ioctl(fd, TUNSETIFF, &request) < 0 || ioctl(fd, TUNSETPERSIST, 1) < 0)
		rc = -errno;
	close(fd);
	return rc;
}

static struct ifreq request_of(const char *name)
{
	struct ifreq request = {.ifr_name = ""};

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	return request;
}

static int control(int inet, unsigned long what, void *request)
{
	return ioctl(inet, what, request) < 0 ? -errno : 0;
}

static int add_port(int inet, const char *name)
{
	struct ifreq request = request_of(BRIDGE);

	request.ifr_ifindex = (int)if_nametoindex(name);
	return control(inet, SIOCBRADDIF, &request);
}

static int make_bridge(int inet)
{
	char name[] = BRIDGE;

	return control(inet, SIOCBRADDBR, name);
}

static int set_up(int inet, const char *name, bool up)
{
	struct ifreq request = request_of(name);
	int rc = control(inet, SIOCGIFFLAGS, &request);

	request.ifr_flags = (short)(up ? request.ifr_flags | IFF_UP : request.ifr_flags & ~IFF_UP);
	return rc ? rc : control(inet, SIOCSIFFLAGS, &request);
}

/* Switches IPv6 off, which also removes the interface's addresses. A kernel without IPv6 has
 * nothing to switch off. */
static int end_ipv6(const char *name)
{
	char path[64 + IFNAMSIZ];
	int fd, rc;

	snprintf(path, sizeof(path), "/proc/sys/net/ipv6/conf/%s/disable_ipv6", name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	rc = write(fd, "1", 1) == 1 ? 0 : -errno;
	close(fd);
	return rc;
}

static int end_addresses(int inet)
{
	struct ifreq request = request_of(LINK);
	int rc = end_ipv6(LINK);

	request.ifr_addr.sa_family = AF_INET;
	if (!rc)
		rc = control(inet, SIOCSIFADDR, &request);
	return rc ? rc : set_up(inet, LINK, false);
}

static int change_mac(int inet)
{
	struct ifreq request = request_of(LINK);
	uint8_t mac[6];

	random_bytes(mac, sizeof(mac));
	mac[0] = (uint8_t)((mac[0] & 0xfc) | 0x02); /* locally administered, not multicast */
	request.ifr_hwaddr.sa_family = ARPHRD_ETHER;
	memcpy(request.ifr_hwaddr.sa_data, mac, sizeof(mac));
	return control(inet, SIOCSIFHWADDR, &request);
}

static int bring_up(int inet, const char *name)
{
	int rc = end_ipv6(name);

	return rc ? rc : set_up(inet, name, true);
}

static int make_all(struct work *w, int inet)
{
	int rc = 0;

	STEP("making the tap", make_tap(w->name));
	STEP("taking the addresses off " LINK, end_addresses(inet));
	STEP("another MAC for " LINK, change_mac(inet));
	STEP("making the bridge " BRIDGE, make_bridge(inet));
	STEP("adding " LINK " to the bridge", add_port(inet, LINK));
	STEP("adding the tap to the bridge", add_port(inet, w->name));
	STEP("bringing up " LINK, bring_up(inet, LINK));
	STEP("bringing up the tap", bring_up(inet, w->name));
	STEP("bringing up the bridge", bring_up(inet, BRIDGE));
	return rc;
}

static int in_netns(void *context)
{
	int inet = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc;

	if (inet < 0)
		return -errno;
	rc = make_all(context, inet);
	close(inet);
	return rc;
}

int tap_make(const char *path, const char *name, const char **step)
{
	struct work w = {.name = name, .step = "entering the namespace"};
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), rc;

	rc = fd < 0 ? -errno : netns_run(fd, in_netns, &w);
	if (fd >= 0)
		close(fd);
	*step = w.step;
	return rc;
}
