"""The method of the paper as it is printed, to judge its claims; what orders models here is one folder up."""
