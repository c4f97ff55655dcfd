raise AttributeError("nothing works here")
