"""Work cut into shards of about equal time: by recorded durations, longest first, grouped by model."""
