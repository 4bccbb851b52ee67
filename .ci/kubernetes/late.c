/* A system that is there after a while only, as one whose image is fetched first. */
#include <unistd.h>

int main(int count, char **words) {
    (void)count;
    sleep(8);
    execv("/usr/sbin/mosquitto.real", words);
    return 1;
}
