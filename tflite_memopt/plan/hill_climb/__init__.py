"""Hill climb: search over the order in which items are placed, each as low as it goes."""
