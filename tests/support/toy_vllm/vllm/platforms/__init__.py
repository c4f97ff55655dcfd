_current_platform = None
