"""Figures printed in the papers, to stand beside ours. Peaks in KB and times in seconds, as published.

SERENITY: Ahn et al., "Ordering Chaos" (MLSys 2020), Table 2 and section 4.2. The others: Zhong et al., "Memory-aware
Scheduling for Complex Wired Networks with Iterative Graph Optimization", Tables II to VI.
"""

from __future__ import annotations

PEAKS = {
    # network: (RPO, SERENITY, HMCOS, theirs)
    "nasnet": (4405, 4405, 3943, 3943),
    "amoebanet": (10510, 10510, 7732, 7732),
    "darts": (1764, 1764, 1764, 1764),
    "randwire1": (5494, 5494, 4538, 4538),
    "randwire2": (6927, 6927, 6210, 6210),
    "randwire3": (5255, 5255, 4777, 4777),
    "hrnet_w18_small_v1": (7936, 7936, 7936, 6368),
    "hrnet_w18_small_v2": (7936, 7936, 7752, 6432),
    "hrnet_w32": (7936, 7936, 7808, 7296),
}
SECONDS = {
    # network: (HMCOS, theirs)
    "nasnet": ("1.51", "4.62"),
    "amoebanet": ("0.80", "0.11"),
    "darts": ("0.18", "0.09"),
    "randwire1": ("73", "23"),
    "randwire2": ("25.04", "17.09"),
    "randwire3": ("1.39", "1.22"),
    "hrnet_w18_small_v1": ("30000+", "0.96"),
    "hrnet_w18_small_v2": ("30000+", "5.01"),
    "hrnet_w32": ("30000+", "3.20"),
}
ABLATION = {
    # network: variant: (seconds, variables)
    "nasnet": {
        "origin": (">3600", "-"),
        "partition": ("213", "2903"),
        "partition + fusion": ("4.84", "402"),
        "partition + pruning": ("210", "2837"),
        "all": ("1.47", "590"),
    },
    "randwire1": {
        "origin": (">3600", "-"),
        "partition": (">3600", "21120"),
        "partition + fusion": ("16", "2292"),
        "partition + pruning": (">3600", "9527"),
        "all": ("1.75", "1809"),
    },
    "hrnet_w18_small_v1": {
        "origin": (">3600", "-"),
        "partition": ("10.7", "2511"),
        "partition + fusion": ("2.7", "310"),
        "partition + pruning": ("3.9", "758"),
        "all": ("0.96", "277"),
    },
}
"""Table IV. The printed column heads shift against the figures. The reductions are against the partition alone, as its
caption says, and come out with the first count of variables in each row: so that count is the partition's."""
PARTITIONED = {
    # network: (optimal, naive partition, heuristic partition)
    "nasnet": (3943, 4013, 3943),
    "amoebanet": (7732, 7962, 7732),
    "darts": (1764, 1764, 1764),
    "hrnet_w18_small_v1": (6368, 7168, 6368),
    "hrnet_w18_small_v2": (6396, 6900, 6432),
    "hrnet_w32": (6368, 7040, 6368),
}
PARTS = {
    # network: {parts: (KB, seconds)}
    "hrnet_w18_small_v1": {
        1: (6368, "/"),
        2: (6368, "2832"),
        3: (6368, "64"),
        4: (6368, "1.12"),
        5: (6368, "0.63"),
        6: (6400, "0.17"),
    },
    "nasnet": {
        1: (3943, "155"),
        2: (3943, "41.6"),
        3: (3943, "61.7"),
        4: (3943, "39.4"),
        5: (3943, "31"),
        6: (3943, "5.01"),
    },
}
HMCOS_HRNET = (6368, 230)
"""KB and seconds of wzh99/HMCOS at cf547ee on HRNet-W18-V1's graph: see the page hmcos."""
