import sys
from pathlib import Path

# Small files in the formats of the published ones.
sys.path.append(str(Path(__file__).parent / "converters" / "support"))
