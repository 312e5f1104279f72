"""Never ends."""

EXPECT = "timeout"
SAYS = "ran longer than"

while True:
    pass
