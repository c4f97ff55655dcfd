import absent_vision_package.transforms as transforms
from absent_vision_package import InterpolationMode


class Model(transforms.Base):
    mode = InterpolationMode.BICUBIC
