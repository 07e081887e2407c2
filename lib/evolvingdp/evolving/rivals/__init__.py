"""What THRESH and HEAVYTHRESH compete with: other protocols for data that change, one file each."""
