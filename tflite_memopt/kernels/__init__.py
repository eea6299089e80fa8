"""What kernel libraries guarantee and what they take: profiles, and the cost model of TFLM's arena."""
